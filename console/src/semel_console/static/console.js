// What a page does by itself: it is asked for again while a person looks at it, and answers to keys.
"use strict";
(() => {
  const main = () => document.getElementById("main");
  const lost = document.getElementById("lost");
  let stream = null;
  let isPaused = false;

  // The server says when to look again. A hidden page holds no stream, so it causes no call.
  const listen = () => {
    if (stream || document.hidden || isPaused || !main() || !("live" in main().dataset)) return;
    stream = new EventSource("/events");
    stream.addEventListener("look", () => htmx.trigger(main(), "refresh"));
    stream.addEventListener("open", () => { lost.hidden = true; });
    stream.addEventListener("error", () => { lost.hidden = false; });
  };
  const rest = () => {
    if (stream) stream.close();
    stream = null;
  };
  // A page of the console takes the place of the one before, also a page that names a service which is
  // away. Another answer, such as that of a server which is overloaded, leaves the page as it is.
  document.addEventListener("htmx:beforeSwap", (event) => {
    const kind = event.detail.xhr.getResponseHeader("Content-Type") || "";
    const isPage = kind.startsWith("text/html");
    event.detail.shouldSwap = isPage;
    event.detail.isError = !isPage;
    lost.hidden = isPage;
  });
  document.addEventListener("visibilitychange", () => (document.hidden ? rest() : listen()));
  window.addEventListener("pagehide", rest);
  window.addEventListener("pageshow", listen);

  // A page that is stopped keeps what it shows.
  const pause = () => {
    isPaused = !isPaused;
    if (isPaused) {
      rest();
      htmx.trigger(main(), "htmx:abort"); // What is on its way would change the page.
    } else listen();
    showButtons();
  };

  // Buttons that need this script are hidden without it.
  const showButtons = () => {
    for (const button of document.querySelectorAll("button[data-copy]")) {
      button.hidden = !navigator.clipboard;
    }
    for (const button of document.querySelectorAll("button[data-pause]")) {
      button.hidden = false;
      button.textContent = isPaused ? "Go on" : "Stop updates";
    }
  };
  document.addEventListener("htmx:afterSettle", showButtons);
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-copy]");
    if (button) navigator.clipboard.writeText(button.dataset.copy);
    if (event.target.closest("button[data-pause]")) pause();
  });

  // "/" goes to the search; "g" and a letter to a page; "." stops and goes on.
  let isGoing = false;
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, select, textarea")) return;
    if (isGoing) {
      isGoing = false;
      const link = document.querySelector(`nav a[data-key="${CSS.escape(event.key)}"]`);
      if (link) link.click();
      return;
    }
    if (event.key === "/") {
      event.preventDefault();
      document.getElementById("search").focus();
    } else if (event.key === "g") {
      isGoing = true;
    } else if (event.key === ".") {
      pause();
    }
  });

  showButtons();
  listen();
})();
