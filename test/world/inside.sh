#!/bin/sh
# usage: inside.sh FOLDER CASE...
#
# Runs the commands of a user in a sandbox, one case after the other, with only the environment that
# codev-init made. FOLDER (mounted from the host) contains projects made outside. A case works in
# FOLDER/work/CASE, its output goes to FOLDER/CASE.out, and a line "CASE STATUS SECONDS" on standard
# output reports its end. FOLDER/clients contains package managers that the image lacks.
#
# A case adds the settings that its user would have to make: that this registry signs no packages
# (corepack), the key of this checksum database (go) and of this archive (apt), the host of a
# private registry (npm ci).
folder=$1
shift
clients=$folder/clients/node_modules
base=${BASE:-http://127.0.0.1:8788}

project() {
    echo '{"private":true,"dependencies":{"world-app":"^1.0.0"}}' >package.json
}

count_parts() {
    "$@" -e 'console.log("parts:", require("world-app").length)'
}

case_npm_install() {
    project
    npm install && count_parts node || return
    ! grep -q 127.0.0.1 package-lock.json || {
        echo "the lock file holds addresses of the sandbox"
        return 1
    }
}

case_npm_ci() { # resolved: the address of npm's own default registry
    cp "$folder"/outside/public/* .
    npm ci && count_parts node
}

case_npm_ci_private() { # resolved: the address of another registry, which the rule leads to
    cp "$folder"/outside/private/* .
    NPM_CONFIG_REPLACE_REGISTRY_HOST=npm.localhost npm ci
}

case_pnpm() {
    project
    node "$clients/pnpm/bin/pnpm.cjs" install && count_parts node
}

case_yarn_classic() {
    project
    node "$clients/yarn/bin/yarn.js" install --non-interactive && count_parts node
}

case_yarn_berry() { # which corepack fetches first
    echo "{\"private\":true,\"packageManager\":\"yarn@$(cat "$folder/berry-version")\",\"dependencies\":{\"world-app\":\"^1.0.0\"}}" \
        >package.json
    : >yarn.lock
    yarn="env COREPACK_INTEGRITY_KEYS=0 node $clients/corepack/dist/corepack.js yarn"
    $yarn install && $yarn node -e 'console.log("parts:", require("world-app").length)'
}

case_pip() {
    python3 -m pip install --target site world-app world-html &&
        PYTHONPATH=site python3 \
            -c 'import world_app, world_html; print("names:", world_app.NAMES, world_html.NAME)'
}

case_cargo() {
    printf '[package]\nname = "mine"\nversion = "0.1.0"\nedition = "2021"\n' >Cargo.toml
    printf '[dependencies]\nworld-app = "1"\n' >>Cargo.toml
    mkdir src
    echo 'pub fn nothing() {}' >src/lib.rs
    cargo fetch && grep -q "$(printf 'name = "world-lib"')" Cargo.lock || return
    ls "${CARGO_HOME:-$HOME/.cargo}"/registry/cache/*/*.crate
}

case_go() {
    printf 'module mine\n\ngo 1.19\n\nrequire world.test/app v1.1.0\n' >go.mod
    [ -n "$KEEP_GOSUMDB" ] || export GOSUMDB="$(cat "$folder/sumdb-key") $base/sumdb"
    go mod download -x world.test/app@v1.1.0 world.test/lib@v1.0.0
}

case_git() {
    git clone https://github.com/acme/app && cd app || return
    git ls-remote git@github.com:acme/app.git || return
    echo more >>README
    git -c user.name=world -c user.email=world@example.com commit -q -a -m more &&
        git push origin HEAD:refs/heads/from-inside
}

case_git_lfs() {
    git clone https://github.com/acme/app && cd app || return
    git lfs install --local && git lfs pull && sha256sum large.bin
}

case_archive() { # of a host that answers with a redirect to another host
    curl --silent --show-error --fail-with-body --location --output a.tar.gz \
        "$base/github/acme/app/archive/v1.tar.gz" &&
        tar -tzf a.tar.gz || { cat a.tar.gz; return 1; }
}

case_apt() {
    apt="apt-get -o Dir::Etc::Trusted=$folder/archive-key.gpg -o Dir::Etc::TrustedParts=-"
    $apt update && $apt download world-hello world-fix &&
        dpkg-deb -x world-hello_1.0_all.deb root &&
        cat root/usr/share/world-hello/hello && ls world-fix_2.0_all.deb
}

[ "$1" = environment ] && { env >"$folder/environment.out"; shift; }
for name; do
    mkdir -p "$folder/work/$name"
    begin=$(date +%s)
    (cd "$folder/work/$name" && "case_$name") >"$folder/$name.out" 2>&1 </dev/null
    echo "$name $? $(($(date +%s) - begin))"
done
