#!/bin/sh
# Usage: debian.sh ARCH GUEST [tar]
#
# Makes GUEST/rootfs-debian.erofs, or with `tar` GUEST/rootfs-debian.tar: Debian with the packages
# of rootfs/debian-packages, and over it what GUEST/rootfs.tar, the small image, has besides
# busybox's applets. In steps, each kept in the cache folder under a hash of what it was made from:
#
#     packages  the .deb files with a list of them, from the machine's own archive (signatures are
#               checked here); later steps need no network. They stay at these versions until the
#               list changes or the folder is removed.
#     tree      mmdebstrap installs them, debian-tree changes the tree for the guest: about a minute
#               and a half. Without root this needs user namespaces, and the tree's owners are kept
#               in a file of fakeroot's.
#     image     the programs of this build laid over the tree, and the file system made: a quarter
#               of a minute.
#
# Of trees and images the last two are kept. Time stamps are SOURCE_DATE_EPOCH, the UUID is fixed.
set -eu

arch=$1 guest=$2 kind=${3:-erofs}
here=$(cd "$(dirname "$0")" && pwd)
. "$here/apt.sh"
suite=bookworm
export SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-1790000000}"
epoch=$SOURCE_DATE_EPOCH
uuid=c0de5a4d-b0c5-4b1e-9a6e-000000000002
caches=${XDG_CACHE_HOME:-$HOME/.cache}/codev-sandbox
cache=$caches/debian
small=$guest/rootfs.tar

case $arch in
x86_64) debian_arch=amd64 ;;
aarch64) debian_arch=arm64 ;;
*) echo "error: no guest for ARCH=$arch (x86_64 or aarch64)" >&2; exit 1 ;;
esac

short_hash() { sha256sum | cut -c 1-16; }

packages=$(sed 's/#.*//' "$here/debian-packages" | awk 'NF { print $1 }')
store=$caches/debs/debian-$debian_arch-$(echo "$suite $packages" | short_hash)

# Who is not root sees root's files through fakeroot; what it knows of owners lies beside the tree.
as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else fakeroot -i "$tree.owners" -s "$tree.owners" -- "$@"; fi
}

# One apt resolves for an empty system.
fetch() {
    # shellcheck disable=SC2086
    apt_download "$work" "$work/store" "$debian_arch" "$suite" '?essential' $packages
    mkdir -p "$caches/debs"
    mv -T "$work/store" "$store"
}

# dpkg's options from rootfs/debian-exclude, one a line.
exclusions() {
    sed 's/#.*//' "$here/debian-exclude" | awk 'NF == 2 { print "--dpkgopt=" $1 "=" $2 }'
}

# Namespaces of mounts and processes: what is mounted in the tree is never seen outside, and nothing
# outlives us. A container may refuse them; mmdebstrap then finds by itself that it may not mount
# either, and does without.
alone() {
    if [ "$(id -u)" = 0 ] && unshare --mount --pid --fork --mount-proc true 2>/dev/null; then
        unshare --mount --pid --fork --mount-proc --kill-child -- "$@"
    else
        "$@"
    fi
}

# OPTIONS...: mode and format; the tree comes into $target.
install_packages() {
    # shellcheck disable=SC2046,SC2086
    (set -f; alone mmdebstrap "$@" --variant=essential --architectures="$debian_arch" \
        --include="$(echo $packages | tr ' ' ,)" --aptopt='APT::Sandbox::User "root"' \
        --aptopt='APT::Install-Recommends "false"' --aptopt='Acquire::Languages "none"' \
        --dpkgopt=force-unsafe-io \
        $(exclusions) --customize-hook="$here/debian-tree"' "$1"' \
        --skip=output/dev "$suite" "$target" "deb [trusted=yes] copy:$source ./") 2>"$work/log" ||
        { tail -40 "$work/log" >&2; exit 1; }
}

build_tree() {
    count=$(grep -c ^Package: "$store/Packages")
    echo "  DEBIAN  $arch: installing $count packages, about 2 minutes; kept in $tree"
    mkdir -p "$work/tree"
    chmod 755 "$work"
    source=$store
    export TMPDIR="$work"
    if [ "$(id -u)" = 0 ]; then
        target=$work/tree
        install_packages --mode=root --format=directory
    else
        # Root of a user namespace is somebody else, who must be able to read the packages.
        source=$work/packages target=-
        cp -rl "$store" "$source" 2>/dev/null || cp -r "$store" "$source"
        chmod -R a+rX "$source"
        install_packages --mode=unshare --format=tar |
            fakeroot -s "$work/owners" tar -xp --numeric-owner -C "$work/tree" --exclude='./dev/*'
        mv "$work/owners" "$tree.owners"
    fi
    rm -rf "$work"/tree/dev/* "$work"/tree/run/*
    mv -T "$work/tree" "$tree"
}

# What of the small image is not for Debian: busybox's links, and files of which Debian has its own.
not_for_debian() {
    sed 's/#.*//' "$here/applets" |
        awk 'NF { path = $1; if (path !~ /^usr\//) path = "usr/" path; print "./" path }'
    for file in group nsswitch.conf os-release passwd profile shadow shells skel skel/.profile; do
        echo "./etc/$file"
    done
    echo ./home/codev/.profile
    echo ./root
}

build_image() {
    not_for_debian >"$work/exclude"
    as_root tar -xp --numeric-owner -C "$tree" --no-wildcards --anchored \
        -X "$work/exclude" -f "$small"
    bad=$(as_root find "$tree" ! -type l \( -perm /6000 -o -type b -o -type c \))
    [ -z "$bad" ] || { echo "error: set-uid files or devices in the image: $bad" >&2; exit 1; }
    if [ "$kind" = tar ]; then
        as_root tar -c --sort=name --mtime="@$epoch" --numeric-owner --format=gnu \
            -C "$tree" -f "$work/image" .
    else
        as_root env -u SOURCE_DATE_EPOCH mkfs.erofs --quiet -x-1 -zlz4 -C65536 \
            "-T$epoch" "-U$uuid" \
            "$work/image" "$tree" \
            >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
    fi
}

# Keeps what was used last.
keep_two() {
    # shellcheck disable=SC2012
    ls -dt "$cache/$1-$arch-"* 2>/dev/null | grep -v '\.owners$' | tail -n +3 |
        while IFS= read -r old; do
        rm -rf "$old" "$old.owners"
    done
}

mkdir -p "$cache"
exec 9>"$cache/lock-$arch"
flock 9
rm -rf --one-file-system "$cache/work-$arch".* # of a build that was killed: the lock is ours
work=$(mktemp -d "$cache/work-$arch.XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT
trap 'exit 130' INT TERM HUP

if [ "$(id -u)" != 0 ] && ! command -v newuidmap >/dev/null; then
    echo "error: the Debian image needs root, or newuidmap (package uidmap) and" \
        "the user's ranges in /etc/subuid" >&2
    exit 1
fi
if [ ! -d "$store" ]; then
    count=$(echo "$packages" | wc -l)
    echo "  FETCH   Debian for $arch: $count packages and what they need, 500 MB"
    fetch
fi
# The names in the small image too: a file that is no longer in it must not stay in the tree.
tree=$cache/tree-$arch-$({
    cat "$store/Packages" "$here/debian-exclude" "$here/debian-tree" "$here/debian.sh"
    cat "$here/files/etc/passwd" "$here/files/etc/group" "$here/files/etc/shadow"
    tar -tf "$small"
} | short_hash)
image=$cache/$kind-$arch-$({
    echo "$tree $(mkfs.erofs --help 2>&1 | head -1)"
    cat "$small"
} | short_hash)
if [ ! -f "$image" ]; then
    [ -d "$tree" ] || build_tree
    build_image
    chmod 644 "$work/image"
    mv "$work/image" "$image"
    touch "$tree"
fi
touch "$image"
keep_two tree
keep_two "$kind"
mkdir -p "$guest"
# Another name for the file in the cache: mv(1) would refuse to put one over the other.
rm -f "$guest/.debian.new" "$guest/rootfs-debian.$kind"
ln "$image" "$guest/.debian.new" 2>/dev/null || cp --reflink=auto "$image" "$guest/.debian.new"
mv "$guest/.debian.new" "$guest/rootfs-debian.$kind"
