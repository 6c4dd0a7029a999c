"""Write releases.tsv from unpacked SGLang wheels: see README.md beside this file.

usage: extract.py FOLDER > releases.tsv     every FOLDER/sglang-VERSION/sglang is one release
       extract.py --dump FOLDER/sglang-VERSION    (used by the first form, one process a release)
"""

import argparse
import importlib
import importlib.abc
import importlib.machinery
import json
import os
import re
import subprocess
import sys
import types


class Anything:
    """Stands in for what an uninstalled module would have given."""

    def __init__(self, *args, **kwargs):
        pass

    def __call__(self, *args, **kwargs):
        return args[0] if len(args) == 1 and callable(args[0]) else Anything()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything()

    def __mro_entries__(self, bases):
        return (object,)

    def __getitem__(self, key):
        return Anything()

    def __iter__(self):
        return iter(())

    def __bool__(self):
        return False


class StubModule(types.ModuleType):
    __path__ = []
    __version__ = "0"

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (Anything,), {}) if name[0].isupper() else Anything()


class Stubs(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives an empty module for every import of SGLang's own code that is not installed here."""

    def __init__(self, root):
        self.root, self.made = root, set()

    def find_spec(self, name, path, target=None):
        top = name.split(".")[0]
        if top == "sglang":
            return None
        if top not in self.made:
            frame = sys._getframe(1)
            while frame and "importlib" in frame.f_code.co_filename:
                frame = frame.f_back
            if not frame or not frame.f_code.co_filename.startswith(self.root):
                return None
            self.made.add(top)
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return StubModule(spec.name)

    def exec_module(self, module):
        pass


def tolerate():
    """Old releases expect older libraries; what they miss is of no consequence for options."""
    try:
        import triton.runtime.cache as cache

        for name in ("default_cache_dir", "default_dump_dir", "default_override_dir"):
            if not hasattr(cache, name):
                setattr(cache, name, lambda: "")
    except ImportError:
        pass
    try:
        from transformers.models.auto import configuration_auto as auto

        plain = auto._LazyConfigMapping.register
        auto._LazyConfigMapping.register = lambda self, key, value, exist_ok=False: plain(self, key, value, exist_ok=True)
    except ImportError:
        pass


def dump(root):
    """The options of one release, from its own add_cli_args."""
    sys.path.insert(0, root)
    sys.meta_path.append(Stubs(root))
    package = types.ModuleType("sglang")  # its __init__ imports far too much
    package.__path__ = [os.path.join(root, "sglang")]
    sys.modules["sglang"] = package
    tolerate()
    parser = argparse.ArgumentParser()
    importlib.import_module("sglang.srt.server_args").ServerArgs.add_cli_args(parser)
    return [option(a) for a in parser._actions if a.dest != "help" and a.option_strings]


TYPES = {"str": "str", "nullable_str": "str", "int": "int", "human_readable_int": "count", "float": "float", "loads": "json", "json_list_type": "json"}


def option(action):
    names = [s[2:] for s in action.option_strings if s.startswith("--")]
    kind = type(action).__name__
    no = [n for n in names if n.startswith("no-") and n[3:] in names]
    if kind in ("BooleanOptionalAction",):
        form = "switch"
    elif kind == "DeprecatedAction":
        form = "nothing"
    elif kind == "DeprecatedStoreConstAction" and action.nargs == 0:
        form = "const"
    elif action.nargs == 0:
        form = "bool"
    else:
        form = TYPES.get(getattr(action.type, "__name__", ""), "str")
        form += {"+": "+", "*": "*", "?": "?"}.get(action.nargs, "")
    names = [n for n in names if n not in no]
    own = action.dest.replace("_", "-")
    name = own if own in names else names[0]
    help_text = action.help or ""
    marks = []
    if "Deprecated" in kind or re.match(r"\W*deprecated\b", help_text, re.I) or re.match(r"removed\b", help_text, re.I):
        marks.append("deprecated")
    if help_text == argparse.SUPPRESS:
        marks.append("hidden")
    default = None if action.default == argparse.SUPPRESS else plain(action.default)
    return {
        "name": name,
        "form": form,
        "default": json.dumps(default),
        "choices": "|".join(words(action.choices)) if action.choices else "-",
        "aliases": ",".join(sorted(n for n in names if n != name)) or "-",
        "marks": ",".join(marks) or "-",
    }


def words(choices):
    """Choices as words, in SGLang's order; a set has none, so it is sorted."""
    return sorted(map(str, choices)) if isinstance(choices, (set, frozenset)) else [str(c) for c in choices]


def plain(value):
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    value = getattr(value, "value", value)  # an enum
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return None


def order(version):
    return [int(n) for n in re.findall(r"\d+", version)]


def main():
    if sys.argv[1] == "--dump":
        json.dump(dump(sys.argv[2]), sys.stdout)
        return
    folder = sys.argv[1]
    releases = sorted((d[len("sglang-"):] for d in os.listdir(folder) if os.path.isdir(os.path.join(folder, d, "sglang"))), key=order)
    rows = []  # [name, first, last, facts]
    for i, release in enumerate(releases):
        root = os.path.join(folder, "sglang-" + release)
        out = subprocess.run([sys.executable, __file__, "--dump", root], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        for o in json.loads(out[out.index(b"[{"):]):
            facts = (o["form"], o["default"], o["choices"], o["aliases"], o["marks"])
            same = [r for r in rows if r[0] == o["name"] and r[2] == i - 1 and r[3] == facts]
            if same:
                same[0][2] = i
            else:
                rows.append([o["name"], i, i, facts])
    print("# Options of SGLang's server, release by release: see README.md beside this file.")
    print("# releases: " + " ".join(releases))
    print("# name\tfirst\tlast\tform\tdefault\tchoices\taliases\tmarks")
    for name, first, last, facts in sorted(rows, key=lambda r: (r[0], r[1])):
        print("\t".join([name, releases[first], releases[last], *facts]))


main()
