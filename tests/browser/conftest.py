"""A real browser, headless Chromium, for the pages. Without one, these tests are skipped, or fail on demand."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

from tests.needs import needed

NEEDED = "CONFORM_NEEDS_BROWSER"
"""Set to 1 if a missing browser is a failure: a run must not be green because of skipped tests."""
ADVICE = "install Chromium and its driver (Debian: apt-get install chromium chromium-driver)"


@dataclass
class Browser:
    """The browser's interface for tests."""

    driver: webdriver.Chrome
    folder: Path

    def show(self, page: str, width: int = 1280, *, dark: bool = False) -> None:
        """Open a page as a file, in a window of that width."""
        file = self.folder / "page.html"
        file.write_text(page, encoding="utf-8")
        self.open(file, width, dark=dark)

    def open(self, file: Path, width: int = 1280, *, dark: bool = False) -> None:
        """Open a file, and clear the log and requests of earlier pages."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        self.driver.get("about:blank")
        for kind in ("browser", "performance"):
            self.driver.get_log(kind)
        self.driver.get(file.as_uri())

    def ask(self, script: str, *arguments: Any) -> Any:
        """Run a function's body in the page and return what it returns."""
        return self.driver.execute_script(script, *arguments)

    def all(self, selector: str) -> list[WebElement]:
        """Return the elements that a selector finds."""
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def complaints(self, due: int = 0) -> list[str]:
        """Return errors and warnings of the console, violations of the policy too; wait for pending ones."""
        return self._logged("browser", str, due)

    def fetched(self, due: int = 0) -> list[str]:
        """Return the addresses that the page requested, except files and data; wait for pending ones."""
        return self._logged("performance", _asked, due)

    def _logged(self, kind: str, read: Callable[[str], str], due: int) -> list[str]:
        found: list[str] = []

        def enough(driver: webdriver.Chrome) -> bool:
            found.extend(filter(None, (read(entry["message"]) for entry in driver.get_log(kind))))
            return len(found) >= due

        WebDriverWait(self.driver, 20).until(enough)
        return found

    def tree(self) -> list[dict[str, Any]]:
        """Return what a screen reader gets: role, name and properties. The last entry is the page's footer."""
        found = WebDriverWait(self.driver, 20).until(_accessible_tree)
        return [
            {
                "role": node.get("role", {}).get("value"),
                "name": node.get("name", {}).get("value", ""),
                **{p["name"]: p["value"].get("value") for p in node.get("properties", [])},
            }
            for node in found
            if not node.get("ignored")
        ]

    def press(self, key: str) -> WebElement:
        """Press a key, and return the element that then has the focus."""
        self.driver.switch_to.active_element.send_keys(key)
        return self.driver.switch_to.active_element

    def reached_by_tab(self, most: int = 200) -> list[WebElement]:
        """Return the elements that the tab key reaches, in order, until it is back at the first."""
        found: list[WebElement] = []
        for _ in range(most):
            focused = self.press(Keys.TAB)
            if focused.tag_name == "body" or focused in found:
                break
            found.append(focused)
        return found


def _asked(message: str) -> str:
    """Return the address of a network event, if it is an external one."""
    event = json.loads(message)["message"]
    url: str = event["params"]["request"]["url"] if event["method"] == "Network.requestWillBeSent" else ""
    return "" if url.startswith(("file:", "data:", "about:")) else url


def _accessible_tree(driver: webdriver.Chrome) -> list[dict[str, Any]]:
    """Return the tree once the browser has completed it, which happens after the page is loaded."""
    found: list[dict[str, Any]] = driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    return found if any(node.get("role", {}).get("value") == "contentinfo" for node in found) else []


@pytest.fixture(scope="package")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    chromium = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chromium-browser")
    chromedriver = shutil.which("chromedriver")
    if chromium is None or chromedriver is None:
        missing = "chromium" if chromium is None else "chromedriver"
        if needed("BROWSER"):
            pytest.fail(f"{NEEDED} is set, and there is no {missing}: {ADVICE}")
        pytest.skip(f"there is no {missing}: {ADVICE}")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(chromedriver))
    try:
        yield Browser(driver, tmp_path_factory.mktemp("pages"))
    finally:
        driver.quit()
