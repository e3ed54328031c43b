# Sourced by sysroot.sh and debian.sh: apt with a configuration of our own (own sources, own lists,
# own cache folder, an architecture of our choice), so nothing of the machine's own package system
# is read but the addresses of its archives and the keys that sign them, and nothing is changed. No
# archive's address stands in the tree: a mirror keeps working.

# The machine's own archive, by the address that apt uses now.
apt_archive() {
    apt-get indextargets --format '$(CREATED_BY)|$(COMPONENT)|$(RELEASE)|$(REPO_URI)' |
        awk -F'|' \
            '$1 == "Packages" && $2 == "main" && $3 !~ /security|updates|backports/ {
                print $4
                exit
            }'
}

# A `deb` line for each suite of $2..., for the architecture $1.
apt_sources() {
    apt_sources_arch=$1
    shift
    apt_sources_address=$(apt_archive)
    if [ -z "$apt_sources_address" ]; then
        echo "error: apt knows no archive with a 'main' component; run apt-get update first" >&2
        return 1
    fi
    for suite in "$@"; do
        echo "deb [arch=$apt_sources_arch] $apt_sources_address $suite main"
    done
}

# The updates of suite $2 that the machine itself takes, its security archive above all.
apt_update_sources() {
    apt-get indextargets --format '$(CREATED_BY)|$(COMPONENT)|$(RELEASE)|$(REPO_URI)' |
            awk -F'|' -v arch="$1" -v suite="$2" \
        '$1 == "Packages" && $2 == "main" &&
         ($3 == suite "-updates" || $3 == suite "-security") && !seen[$4 $3]++ {
            print "deb [arch=" arch "] " $4 " " $3 " main" }'
}

# Reads the lists of the sources $3 into the folder $1, for architecture $2; from here on every
# program of apt uses them, until APT_CONFIG is unset. The lists of two suites are 80 MB and not
# worth keeping.
apt_begin() {
    mkdir -p "$1/lists/partial" "$1/cache/archives/partial" "$1/debs"
    chmod 755 "$1"
    : >"$1/status"
    echo "$3" >"$1/sources.list"
    # Check-Valid-Until: what is signed stays signed; a mirror that was frozen at some day is none
    # the worse for us.
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
