"""What the project is made of, for who installs it: `python supply_chain.py dist | pins | sbom | audit`.

    dist    dist/: the wheel and the source distribution of the last commit, built twice; fails where the two differ
    pins    requirements-hashed.txt: exact versions with the hashes of their files, as the registry gives them
    sbom    sbom.cdx.json: CycloneDX, of an environment into which those pins were installed with their hashes checked
    audit   known vulnerabilities of the pins; exit code 0: none is known, 1: some are, 3: nobody could tell

No file names an index or a path of this machine; a run that would write one fails. `pip install
'health-assets[supply]'` brings the tools. Which registry is asked is the business of pip and uv, as they are set up.
"""

import argparse
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent
DIST = ROOT / "dist"
PINS = ROOT / "requirements-hashed.txt"
SBOM = ROOT / "sbom.cdx.json"
EXTRAS = ("collect", "judge", "lineage", "mcp", "postgres", "s3", "signing")
BIN = Path(sys.executable).parent
ADDRESS_OPTIONS = ("index-url", "extra-index-url", "find-links", "trusted-host")
ADDRESS = re.compile(rf"file:[/]|[/]simple\b|--(?:{'|'.join(ADDRESS_OPTIONS)})")
"""What a file would hold that tells where packages came from: an index, a folder, an option that names one."""

NONE_KNOWN, SOME_KNOWN, NOBODY_TOLD = 0, 1, 3


def main() -> None:
    """Do what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["dist", "pins", "sbom", "audit"])
    parser.add_argument("--extras", nargs="*", default=EXTRAS, help=f"extras to pin; by default {' '.join(EXTRAS)}")
    parser.add_argument("--service", default="pypi", choices=["pypi", "osv"], help="who is asked for vulnerabilities")
    parser.add_argument("--service-url", help="its address, where it is another than the public one (osv)")
    chosen = parser.parse_args()
    if chosen.what == "dist":
        write_dist()
    elif chosen.what == "pins":
        write_pins(chosen.extras)
    elif chosen.what == "sbom":
        write_sbom()
    else:
        raise SystemExit(audit(chosen.service, chosen.service_url))


# -- distributions -----------------------------------------------------------------------------------------------------


def write_dist() -> None:
    """Build the last commit in two folders, and keep the files where both builds gave the same bytes."""
    with tempfile.TemporaryDirectory() as folder:
        first, second = (built(Path(folder, name)) for name in ("first", "second"))
        if different := different_files(first, second):
            raise SystemExit(f"supply chain: two builds differ in {', '.join(different)}; nothing was written")
        DIST.mkdir(exist_ok=True)
        for path in first:
            shutil.copy(path, DIST)
            print(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {DIST.name}/{path.name}")


def built(folder: Path) -> list[Path]:
    """The source distribution of the last commit, and the wheel that is made from it."""
    _run(["git", "clone", "--quiet", ROOT, folder / "source"])
    _run([sys.executable, "-W", "ignore", "-m", "build", "--no-isolation", "--outdir", folder, folder / "source"])
    return sorted(path for path in folder.iterdir() if path.is_file())


def different_files(first: Sequence[Path], second: Sequence[Path]) -> list[str]:
    """Names of files that are not in both, or not with the same bytes."""
    one, other = ({path.name: path.read_bytes() for path in paths} for paths in (first, second))
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


# -- pins --------------------------------------------------------------------------------------------------------------


def write_pins(extras: Sequence[str]) -> None:
    """Write the hashed pins, for every platform; versions are those of constraints.txt where it names the package."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "pins.txt")
        options = [option for extra in extras for option in ("--extra", extra)]
        _run(
            [
                BIN / "uv",
                "pip",
                "compile",
                ROOT / "pyproject.toml",
                *options,
                "--constraint",
                ROOT / "constraints.txt",
                "--generate-hashes",
                "--universal",
                "--python",
                sys.executable,
                "--no-annotate",
                "--no-header",
                "--quiet",
                "--output-file",
                made,
            ]
        )
        text = made.read_text(encoding="utf-8")
    if unpinned := unhashed(text):
        raise SystemExit(f"supply chain: the registry gave no hash for {', '.join(unpinned)}; nothing was written")
    _write(PINS, f"# Made by `make pins`; install with pip install --require-hashes -r {PINS.name}\n{text}")


def unhashed(pins: str) -> list[str]:
    """Requirements without a version or without a hash."""
    requirements = pins.replace("\\\n", " ").splitlines()
    wanted = [one for one in requirements if one.strip() and not one.startswith("#")]
    return [one.split()[0] for one in wanted if "==" not in one.split()[0] or "--hash=sha256:" not in one]


# -- bill of materials -------------------------------------------------------------------------------------------------


def write_sbom() -> None:
    """Install the pins into an environment of its own, hashes checked, and write down what is there."""
    if not PINS.exists():
        raise SystemExit(f"supply chain: there is no {PINS.name}; run `make pins` first")
    with tempfile.TemporaryDirectory() as folder:
        environment, made = Path(folder, "environment"), Path(folder, "sbom.json")
        _run([sys.executable, "-m", "venv", "--without-pip", environment])
        python = environment / "bin" / "python"
        _run(
            [
                sys.executable,
                "-m",
                "pip",
                "--python",
                python,
                "install",
                "--quiet",
                "--require-hashes",
                "--no-deps",
                "-r",
                PINS,
            ]
        )
        _run(
            [
                BIN / "cyclonedx-py",
                "environment",
                python,
                "--pyproject",
                ROOT / "pyproject.toml",
                "--output-reproducible",
                "--of",
                "JSON",
                "-o",
                made,
            ]
        )
        text = made.read_text(encoding="utf-8").replace(folder, "")
    _write(SBOM, text)
    print(f"{len(json.loads(text)['components']):,} components in {SBOM.name}")


# -- vulnerabilities ---------------------------------------------------------------------------------------------------


def audit(service: str, service_url: str | None) -> int:
    """Ask for known vulnerabilities of the pins, and say in a sentence what came of it."""
    if missing := _missing_for_audit():
        print(f"supply chain: {missing}, so nothing is known")
        return NOBODY_TOLD
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "audit.json")
        where = [] if service_url is None else ["--osv-url", service_url]
        done = subprocess.run(
            [
                BIN / "pip-audit",
                "--requirement",
                PINS,
                "--require-hashes",
                "--disable-pip",
                "--progress-spinner",
                "off",
                "--vulnerability-service",
                service,
                *where,
                "--format",
                "json",
                "--output",
                made,
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        found = json.loads(made.read_text(encoding="utf-8")) if made.exists() else None
    sentence, code = verdict(found, done.stderr)
    print(sentence)
    return code


def _missing_for_audit() -> str | None:
    if not PINS.exists():
        return f"there is no {PINS.name}; run `make pins` first"
    if not (BIN / "pip-audit").exists():
        return "there is no pip-audit; install health-assets[supply]"
    return None


def verdict(found: dict[str, Any] | None, said: str) -> tuple[str, int]:
    """What an audit comes to: a sentence (and a line for each vulnerability), and the exit code.

    pip-audit calls packages that its service does not know clean; here they are not.

    Args:
        found: what pip-audit wrote, None where it wrote nothing.
        said: what it said besides.
    """
    if found is None:
        last = (said.strip().splitlines() or ["it did not say why"])[-1]
        return f"supply chain: no vulnerability service answered, so nothing is known ({last[:300]})", NOBODY_TOLD
    packages = found["dependencies"]
    skipped = [one["name"] for one in packages if "skip_reason" in one]
    vulnerable = [
        f"{one['name']} {one['version']}: {fault['id']}, mended in {', '.join(fault['fix_versions']) or 'no version'}"
        for one in packages for fault in one.get("vulns", [])
    ]  # fmt: skip
    told = f"{len(packages) - len(skipped):,} of {len(packages):,} packages were looked up"
    if vulnerable:
        return "\n".join([f"supply chain: {len(vulnerable)} known vulnerabilities; {told}", *vulnerable]), SOME_KNOWN
    if skipped or not packages:
        unknown = ", ".join(skipped[:3]) + (" and others" if len(skipped) > 3 else "")
        return f"supply chain: {told}; the service does not know {unknown}, so nothing is known of them", NOBODY_TOLD
    return f"supply chain: no vulnerability is known; {told}", NONE_KNOWN


# -- both --------------------------------------------------------------------------------------------------------------


def addresses_in(text: str) -> list[str]:
    """Lines that tell where packages came from."""
    return [line.strip()[:200] for line in text.splitlines() if ADDRESS.search(line) or str(ROOT) in line]


def _write(path: Path, text: str) -> None:
    if found := addresses_in(text):
        raise SystemExit(
            f"supply chain: {path.name} would name where packages came from: {found[0]}; nothing was written"
        )
    path.write_text(text, encoding="utf-8")
    print(f"wrote {path.name}")


def _run(command: Sequence[str | Path]) -> None:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"supply chain: {Path(command[0]).name} failed: {done.stderr.strip()[-1000:]}")


if __name__ == "__main__":
    main()
