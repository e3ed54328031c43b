"""Makes the folder in which inside.sh works: projects made outside, the keys that a user would
have, the clients."""
import json
import os
import pathlib
import shutil
import subprocess

import world
import world_npm


def default_registry():
    """npm's built-in registry address, as npm prints it: lock files made elsewhere contain it."""
    environment = {
        name: value
        for name, value in os.environ.items() if not name.lower().startswith("npm_config_")
    }
    environment |= {
        "NPM_CONFIG_USERCONFIG": "/nonexistent/user",
        "NPM_CONFIG_GLOBALCONFIG": "/nonexistent/global"
    }
    return subprocess.run(["npm", "config", "get", "registry"],
                          check=True,
                          capture_output=True,
                          text=True,
                          cwd="/",
                          env=environment).stdout.strip()


def lock_file(registry, packages, wanted):
    """package-lock.json of a project that needs `wanted`: packages is name -> (integrity,
    dependencies)."""
    entries = {"": {"name": "mine", "version": "1.0.0", "dependencies": {wanted: "^1.0.0"}}}
    for name, (integrity, dependencies) in packages.items():
        file = f"{name.rpartition('/')[2]}-1.0.0.tgz"
        entries[f"node_modules/{name}"] = {
            "version": "1.0.0",
            "resolved": f"{registry}{name}/-/{file}",
            "integrity": integrity,
            **({
                "dependencies": dependencies
            } if dependencies else {})
        }
    return {
        "name": "mine",
        "version": "1.0.0",
        "lockfileVersion": 3,
        "requires": True,
        "packages": entries
    }


def write_project(folder, lock):
    folder.mkdir(parents=True)
    (folder / "package.json").write_text(json.dumps({**lock["packages"][""], "private": True}))
    (folder / "package-lock.json").write_text(json.dumps(lock, indent=2))


def prepare(folder, outside):
    """`outside` is a running World. The folder and its content are given to uid 1000 where this
    process may do so."""
    folder = pathlib.Path(folder)
    folder.mkdir()
    packages = outside.npm_packages
    part = world_npm.DEPENDENCIES[1]
    write_project(folder / "outside/public", lock_file(default_registry(), packages, world_npm.APP))
    write_project(folder / "outside/private",
                  lock_file(outside.url("npm") + "/", {part: packages[part]}, part))
    clients = world.modules(world.HERE / "clients")
    berry = json.loads(
        (clients / "node_modules/@yarnpkg/cli-dist/package.json").read_text())["version"]
    (folder / "berry-version").write_text(berry)
    (folder / "sumdb-key").write_text(outside.sumdb_key)
    shutil.copy(outside.debian_key, folder / "archive-key.gpg")
    shutil.copy(world.HERE / "inside.sh", folder)
    (folder / "clients").mkdir()
    if os.geteuid() == 0:
        subprocess.run(["chown", "-R", "1000:1000", folder], check=True)
    return folder
