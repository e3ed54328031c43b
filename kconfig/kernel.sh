#!/bin/sh
# Usage: kernel.sh ARCH DESTINATION
#
# Builds the VM kernel from Debian's linux-source package, or from the tree that KERNEL_SRC names,
# and copies it to DESTINATION: vmlinux (entered by PVH) and vmlinuz on x86_64, Image on aarch64,
# and the configuration it was built with. A kernel takes minutes, so it is kept in the cache folder
# under a hash of everything it was made from: source, fragments, compiler. kconfig/check.sh runs on
# every configuration, built or taken from the cache.
set -eu

arch=$1 dest=$2
here=$(cd "$(dirname "$0")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/codev-sandbox/kernel
tarball=/usr/src/linux-source-6.1.tar.xz

cross=
[ "$(uname -m)" = "$arch" ] || cross=$arch-linux-gnu-
case $arch in
x86_64) karch=x86_64 images="vmlinux arch/x86/boot/bzImage" targets="vmlinux bzImage" ;;
aarch64) karch=arm64 images=arch/arm64/boot/Image targets=Image ;;
*) echo "error: no kernel configuration for ARCH=$arch" >&2; exit 1 ;;
esac

# What identifies the source without reading all of it: the package's version, or for a folder its
# path, release and the newest change in it.
source_identity() {
    if [ -n "${KERNEL_SRC:-}" ]; then
        echo "$KERNEL_SRC" "$(head -5 "$KERNEL_SRC/Makefile" | cksum)" \
            "$(find "$KERNEL_SRC" -type f -printf '%T@\n' | sort -n | tail -1)"
    else
        dpkg-query -W -f '${Package} ${Version}' linux-source-6.1 2>/dev/null || cksum <"$tarball"
    fi
}

# Becomes make, so that its process can be ended; always called in a subshell.
kernel_make() {
    exec env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL -u KERNEL_SRC \
        KBUILD_BUILD_TIMESTAMP="@${SOURCE_DATE_EPOCH:-1790000000}" \
        KBUILD_BUILD_USER=codev KBUILD_BUILD_HOST=codev KBUILD_BUILD_VERSION=1 \
        nice make -s -C "$source" O="$work" ARCH="$karch" CROSS_COMPILE="$cross" "$@"
}

# The source without what no configuration here compiles: a third of the time and of the room.
unpack() {
    echo "  UNPACK  $tarball"
    mkdir -p "$work/source"
    tar -xf "$tarball" -C "$work/source" --strip-components=1 --exclude='*.rst' \
        --exclude='*/tools/testing/*' \
        --exclude='*/drivers/gpu/*.[ch]' --exclude='*/drivers/net/ethernet/*.[ch]' \
        --exclude='*/drivers/net/wireless/*.[ch]' --exclude='*/drivers/media/*.[ch]' \
        --exclude='*/drivers/staging/*.[ch]' --exclude='*/sound/*.[ch]' \
        --exclude='*/arch/*/boot/dts/*'
}

# Waits for the compilation with a line every 10 s: a kernel of this configuration has about 1400
# objects.
wait_with_progress() {
    seconds=0
    while kill -0 "$builder" 2>/dev/null; do
        sleep 1
        seconds=$((seconds + 1))
        [ $((seconds % 10)) = 0 ] || continue
        printf '  KERNEL  %s: %s objects after %s s\n' "$arch" \
            "$(find "$work" -path "$work/source" -prune -o -name '*.o' -print | wc -l)" "$seconds"
    done
    wait "$builder"
}

# A background process of a script does not get the terminal's interrupt: it has to be ended, and
# waited for.
clean_up() {
    if [ -n "$builder" ]; then
        kill "$builder" 2>/dev/null || true
        wait "$builder" || true
    fi
    rm -rf "$work"
}

build() {
    echo "  KERNEL  $arch: building, about 5 minutes on 2 cores; kept in $store"
    if [ -n "${KERNEL_SRC:-}" ]; then source=$KERNEL_SRC; else source=$work/source; unpack; fi
    cat "$here/base.config" "$here/$arch.config" >"$work/fragments"
    (kernel_make KCONFIG_ALLCONFIG="$work/fragments" allnoconfig) >"$work/log" 2>&1 ||
        { cat "$work/log" >&2; exit 1; }
    "$here/check.sh" "$arch" "$work/.config"
    # shellcheck disable=SC2086
    kernel_make -j"$(nproc)" $targets >"$work/log" 2>&1 &
    builder=$!
    wait_with_progress || { tail -40 "$work/log" >&2; exit 1; }
    mkdir -p "$work/out"
    for image in $images; do
        name=$(basename "$image")
        [ "$name" != bzImage ] || name=vmlinuz
        cp "$work/$image" "$work/out/$name"
    done
    [ "$arch" != x86_64 ] || "${cross}strip" -s "$work/out/vmlinux"
    cp "$work/.config" "$work/out/kernel.config"
    mv -T "$work/out" "$store"
}

key=$({
    source_identity
    grep -h '^CONFIG_\|^# CONFIG_' "$here/base.config" "$here/$arch.config"  # not the comments
    "${cross}gcc" --version | head -1
    "${cross}ld" --version | head -1
} | sha256sum | cut -c 1-16)
store=$cache/$arch-$key

mkdir -p "$cache"
exec 9>"$cache/lock-$arch"
flock 9
if [ ! -d "$store" ]; then
    rm -rf "$cache/work-$arch".*  # of a build that was killed: the lock is ours
    work=$(mktemp -d "$cache/work-$arch.XXXXXX")
    builder=
    trap clean_up EXIT
    trap 'exit 130' INT TERM HUP
    build
fi
"$here/check.sh" "$arch" "$store/kernel.config"
mkdir -p "$dest"
for file in "$store"/*; do
    cp "$file" "$dest/.new" && mv "$dest/.new" "$dest/$(basename "$file")"
done
