"""Reads pages as a browser does, and finds everything in them that no template has written."""

from html.parser import HTMLParser

TAGS = frozenset(
    (
        *(
            "a",
            "bdi",
            "body",
            "button",
            "code",
            "dd",
            "details",
            "div",
            "dl",
            "dt",
            "figcaption",
            "figure",
        ),
        *(
            "form",
            "g",
            "h1",
            "h2",
            "head",
            "header",
            "html",
            "input",
            "label",
            "li",
            "link",
            "main",
        ),
        *("meta", "meter", "nav", "option", "p", "pre", "rect", "script", "section", "select"),
        *(
            "span",
            "strong",
            "summary",
            "svg",
            "table",
            "tbody",
            "td",
            "textarea",
            "th",
            "thead",
            "title",
        ),
        *("tr", "ul"),
    )
)
_ADDRESSES = frozenset({"action", "formaction", "href", "hx-get", "hx-post", "src"})


class PageReader(HTMLParser):
    """What a page consists of."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.offences: list[str] = []
        self.text = ""
        self.links: list[str] = []

    def link_to_writer(self, transactional_id: str, epoch: int = 0) -> str:
        """Return the link to the transaction of one producer id; an error without one."""
        start = f"/transaction?transactional_id={transactional_id}&epoch={epoch}&producer_id="
        return next(each for each in self.links if each.startswith(start))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in TAGS:
            self.offences.append(f"<{tag}>")
        for name, value in attrs:
            text = value or ""
            if name == "style" or name.startswith("on"):
                self.offences.append(f"<{tag} {name}={text!r}>")
            if name in _ADDRESSES:
                self.links.append(text)
                if not text.startswith(("/", "#")) or text.startswith("//"):
                    self.offences.append(f"<{tag} {name}={text!r}>")
            if tag == "script" and name == "src" and not text.startswith("/static/"):
                self.offences.append(f"<script src={text!r}>")

    def handle_data(self, data: str) -> None:
        self.text += data


def read_page(html: str) -> PageReader:
    """Return the contents of a page."""
    reader = PageReader()
    reader.feed(html)
    reader.close()
    return reader
