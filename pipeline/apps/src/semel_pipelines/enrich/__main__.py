"""`python -m semel_pipelines.enrich`: orders and the menu in; sales and kitchen tickets out."""

import logging

from semel_pipelines import command
from semel_pipelines.enrich.transforms import Topics, menu_of, pipeline

NAME = "pizza-enrich"


def main() -> None:
    """Run until told to stop, or until all is done that is there now.

    The menu is the one that its topic has when the pipeline starts.
    """
    parser = command.parser("semel_pipelines.enrich", __doc__ or "")
    parser.add_argument(
        "--orders", default="pizza-orders", help="topic of order lines (%(default)s)"
    )
    parser.add_argument("--menu", default="pizza-menu", help="topic of dishes (%(default)s)")
    parser.add_argument("--sales", default="pizza-sales", help="topic for the books (%(default)s)")
    parser.add_argument(
        "--kitchen", default="pizza-kitchen", help="topic for the kitchen (%(default)s)"
    )
    parser.add_argument(
        "--rejected",
        default="pizza-sales-rejected",
        help="topic for what cannot be sold (%(default)s)",
    )
    arguments = parser.parse_args()
    place = command.place(arguments)
    topics = Topics(sales=arguments.sales, kitchen=arguments.kitchen, rejected=arguments.rejected)
    with command.spark_session(arguments, NAME) as spark:
        menu = menu_of(place.table(spark, arguments.menu)).cache()
        records = pipeline(place.stream(spark, arguments.orders), menu, topics)
        command.follow(place.write(records, NAME))


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    main()
