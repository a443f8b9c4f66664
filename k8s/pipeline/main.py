"""What Spark is given as the program: the pipeline, as `python -m` would run it."""

import runpy

runpy.run_module("semel_pipelines.pizza_income", run_name="__main__", alter_sys=True)
