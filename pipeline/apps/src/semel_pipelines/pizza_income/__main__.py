"""`python -m semel_pipelines.pizza_income`: orders in; income by day and type of pizza out."""

import logging

from semel_pipelines import command
from semel_pipelines.pizza_income.transforms import LATENESS, pipeline

NAME = "pizza-income"


def main() -> None:
    """Run until told to stop, or until all is done that is there now."""
    parser = command.parser("semel_pipelines.pizza_income", __doc__ or "")
    parser.add_argument(
        "--orders", default="pizza-orders", help="topic of order lines (%(default)s)"
    )
    parser.add_argument(
        "--income", default="pizza-income", help="topic for closed days (%(default)s)"
    )
    parser.add_argument(
        "--rejected",
        default="pizza-income-rejected",
        help="topic for records that are no order lines (%(default)s)",
    )
    parser.add_argument(
        "--lateness", default=LATENESS, help="how late an order may come (%(default)s)"
    )
    arguments = parser.parse_args()
    place = command.place(arguments)
    with command.spark_session(arguments, NAME) as spark:
        records = pipeline(
            place.stream(spark, arguments.orders),
            lateness=arguments.lateness,
            income=arguments.income,
            rejected=arguments.rejected,
        )
        command.follow(place.write(records, NAME))


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    main()
