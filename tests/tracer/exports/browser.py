"""A real browser, by the W3C WebDriver protocol."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
DRIVER = shutil.which("chromedriver")
needs_browser = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="needs chromium and chromedriver on the PATH"
)
ARGUMENTS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1300,900",
    "--force-prefers-reduced-motion",
]  # fmt: skip


class Browser:
    def __init__(self, address: str) -> None:
        self._address = address
        options = {"binary": CHROMIUM, "args": ARGUMENTS}
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        session = self._send("POST", "", {"capabilities": {"alwaysMatch": wanted}})
        self._session = f"/{session['sessionId']}"

    def open(self, address: str) -> None:
        self._post("/url", {"url": "about:blank"})
        self._post("/url", {"url": address})

    def run(self, script: str) -> Any:
        return self._post("/execute/sync", {"script": script, "args": []})

    def click(self, selector: str) -> None:
        self._post(f"/element/{self._find(selector)}/click", {})

    def type(self, selector: str, keys: str) -> None:
        self._post(f"/element/{self._find(selector)}/value", {"text": keys})

    def click_at(self, x: int, y: int) -> None:
        steps = [
            {"type": "pointerMove", "x": x, "y": y, "duration": 0},
            {"type": "pointerDown", "button": 0},
            {"type": "pointerUp", "button": 0},
        ]
        mouse = {"type": "pointer", "id": "mouse", "actions": steps}
        self._post("/actions", {"actions": [mouse]})

    def text(self, selector: str) -> str:
        return str(self.run(f"return document.querySelector({json.dumps(selector)}).innerText"))

    def prefer(self, scheme: str) -> None:
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        params = {"features": features}
        self._post("/goog/cdp/execute", {"cmd": "Emulation.setEmulatedMedia", "params": params})

    def complaints(self) -> list[str]:
        entries = self._post("/se/log", {"type": "browser"})
        return [entry["message"] for entry in entries]

    def quit(self) -> None:
        self._send("DELETE", self._session)

    def _find(self, selector: str) -> str:
        found = self._post("/element", {"using": "css selector", "value": selector})
        return str(found[ELEMENT])

    def _post(self, path: str, body: Any) -> Any:
        return self._send("POST", self._session + path, body)

    def _send(self, method: str, path: str, body: Any = None) -> Any:
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(f"{self._address}/session{path}", data, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["value"]


@contextmanager
def started() -> Iterator[Browser]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    assert DRIVER
    with subprocess.Popen([DRIVER, f"--port={port}"], stdout=subprocess.DEVNULL) as driver:
        try:
            _await(port)
            browser = Browser(f"http://127.0.0.1:{port}")
            yield browser
            browser.quit()
        finally:
            driver.terminate()


def _await(port: int) -> None:
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise TimeoutError("chromedriver does not answer")
