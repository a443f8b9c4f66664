"""Every pure module stands on the page of pure modules, with a sentence about its rule."""

import pure_modules_page
from source_tree import pure_modules


def test_the_page_of_pure_modules_is_fresh() -> None:
    assert pure_modules_page.PAGE.read_text() == pure_modules_page.page(), "run `make docs`"


def test_every_pure_module_has_its_sentence() -> None:
    page = pure_modules_page.page()
    modules = [module for module in pure_modules() if not module.path.endswith("/__init__.py")]
    assert len(modules) > 100
    assert all(f"](../../{module.path}) | " in page for module in modules)
    assert "|  |" not in page
