# Sourced by sysroot.sh, debian.sh and test/fresh: apt with its own configuration (sources, lists,
# cache folder, architecture). Of the machine's package system it reads only the addresses of the
# archives and the keys that sign them, and it changes nothing there. The tree names no archive, so
# that a mirror works.

# A line for each file of the machine's sources: its kind, component, suite and archive.
apt_targets() {
    apt-get indextargets --format '$(CREATED_BY)|$(COMPONENT)|$(RELEASE)|$(REPO_URI)'
}

# The address of the machine's archive.
apt_archive() {
    apt_targets | awk -F'|' \
        '$1 == "Packages" && $2 == "main" && $3 !~ /security|updates|backports/ { print $4; exit }'
}

# A `deb` line for each suite of $2..., for the architecture $1.
apt_sources() {
    apt_sources_arch=$1
    shift
    apt_sources_address=$(apt_archive)
    if [ -z "$apt_sources_address" ]; then
        echo "error: apt has no archive with a 'main' component; run apt-get update" >&2
        return 1
    fi
    for suite in "$@"; do
        echo "deb [arch=$apt_sources_arch] $apt_sources_address $suite main"
    done
}

# A `deb` line for each archive of updates of suite $2 that the machine uses: security, updates.
apt_update_sources() {
    apt_targets | awk -F'|' -v arch="$1" -v suite="$2" '
        $1 == "Packages" && $2 == "main" && ($3 == suite "-updates" || $3 == suite "-security") &&
            !seen[$4 $3]++ { print "deb [arch=" arch "] " $4 " " $3 " main" }'
}

# Reads the lists of the sources $3, for architecture $2, into the folder $1. Until APT_CONFIG is
# unset every program of apt uses them. They are not kept: those of two suites are 80 MB.
apt_begin() {
    mkdir -p "$1/lists/partial" "$1/cache/archives/partial" "$1/debs"
    chmod 755 "$1"
    : >"$1/status"
    echo "$3" >"$1/sources.list"
    # Check-Valid-Until: a mirror frozen at some day is accepted, since its lists are signed.
    cat >"$1/apt.conf" <<CONF
Dir::State::Lists "$1/lists";
Dir::State::status "$1/status";
Dir::Cache "$1/cache";
Dir::Etc::SourceList "$1/sources.list";
Dir::Etc::SourceParts "-";
APT::Architecture "$2";
APT::Architectures { "$2"; };
APT::Sandbox::User "";
Acquire::Languages "none";
Acquire::Retries "3";
Acquire::Check-Valid-Until "false";
CONF
    export APT_CONFIG="$1/apt.conf"
    apt-get update -qq
}

# Downloads the packages $5... of suite $4 with its updates, and their dependencies as on an empty
# system, without recommended packages, for Debian's architecture $3. The folder $2 becomes an
# archive that apt reads: the .deb files and a list made from apt's records, by which another apt
# checks them against the signed hashes. The folder $1 takes apt's own files and its log.
apt_download() {
    apt_work=$1 apt_folder=$2 apt_arch=$3 apt_suite=$4
    shift 4
    apt_updates=$(apt_update_sources "$apt_arch" "$apt_suite")
    apt_main=$(apt_sources "$apt_arch" "$apt_suite")
    apt_begin "$apt_work/apt" "$apt_arch" "$apt_main
$apt_updates"
    apt-get install -qq -y -d --no-install-recommends -o Debug::NoLocking=true "$@" \
        >"$apt_work/log" 2>&1 || { cat "$apt_work/log" >&2; exit 1; }
    mkdir "$apt_folder"
    apt_records=
    for deb in "$apt_work"/apt/cache/archives/*.deb; do
        name=$(basename "$deb" | sed 's/%3a/:/')
        package=${name%%_*} rest=${name#*_}
        apt_records="$apt_records $package=${rest%_*}"
        mv "$deb" "$apt_folder/${package}_${rest#*:}"
    done
    # shellcheck disable=SC2086
    apt-cache show $apt_records | sed 's|^Filename: .*/|Filename: ./|' >"$apt_folder/Packages"
    unset APT_CONFIG
    apt_hash=$(sha256sum <"$apt_folder/Packages" | cut -d ' ' -f 1)
    cat >"$apt_folder/Release" <<RELEASE
Origin: Debian
Suite: $apt_suite
Codename: $apt_suite
Architectures: $apt_arch
SHA256:
 $apt_hash $(stat -c %s "$apt_folder/Packages") Packages
RELEASE
}
