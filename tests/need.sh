# shellcheck shell=bash
# Sourced by tests/boot.sh: what this machine lacks is installed, unpacked into the cache, or named.

# cron and some runners set no HOME.
export HOME=${HOME:-$(getent passwd "$(id -u)" | cut -d : -f 6)}
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/flexvolume-lvm
# Administrators' tools are often not in the PATH of others.
PATH=$PATH:/usr/sbin:/sbin

# Where a password is asked for, sudo says what for.
as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo --prompt="[sudo] password of %p, to run ${1##*/} as root: " "$@"; fi
}

# need_root WHAT FOR [COMMAND]: asks for the password now, if sudo needs one. COMMAND is what an administrator can run
# instead.
need_root() {
    [ "$(id -u)" != 0 ] || return 0
    if command -v sudo > /dev/null; then
        sudo --prompt="[sudo] password of %p, $1: " true && return
    fi
    die "root is needed $1. An administrator has to run: ${2:-apt-get install -y sudo && adduser $(id -un) sudo}"
}

# mends_namespaces COMMAND…: if a user can make no user namespace here, prints what an administrator has to do. COMMAND
# runs what follows as that user.
mends_namespaces() {
    local what kernel=/proc/sys/kernel
    ! "$@" unshare --map-root-user --mount true 2> /dev/null || return 0
    for what in unprivileged_userns_clone=1 apparmor_restrict_unprivileged_userns=0; do
        [ "$(cat "$kernel/${what%=*}" 2> /dev/null || echo "${what#*=}")" = "${what#*=}" ] || {
            echo "run \`sudo sysctl -w kernel.$what\`"
            return
        }
    done
    if [ "$(cat /proc/sys/user/max_user_namespaces)" = 0 ]; then
        echo "run \`sudo sysctl -w user.max_user_namespaces=10000\`"
    else
        echo "a container's seccomp profile forbids it, or a rule of AppArmor or SELinux"
    fi
}

# Prints the name of this machine's Debian.
debian() { sed -n 's/^VERSION_CODENAME=//p' /etc/os-release; }

is_here() { command -v "$1" > /dev/null; }

# need COMMAND:PACKAGE… installs the Debian packages whose command is not here.
need() {
    local pair missing=() packages=()
    for pair in "$@"; do
        is_here "${pair%%:*}" || { missing+=("${pair%%:*}") && packages+=("${pair#*:}"); }
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    mapfile -t packages < <(printf '%s\n' "${packages[@]}" | sort -u)
    is_here apt-get || die "missing here: ${missing[*]} (Debian's packages: ${packages[*]}); install these and try again"
    say "installing with apt, for ${missing[*]}: ${packages[*]}"
    need_root "to install packages" "apt-get install -y --no-install-recommends ${packages[*]}"
    timed apt apt_get install --yes "${packages[@]}"
}

# apt_get WORD…: what apt prints is in a file. Steps that run side by side wait for each other: apt itself does not wait
# for the lock of its lists.
apt_get() {
    local log=$CACHE/apt.log
    mkdir -p "$CACHE"
    echo "(what apt prints is in $log)"
    {
        flock 9 && as_root apt-get update &&
            as_root env DEBIAN_FRONTEND=noninteractive apt-get --no-install-recommends -o DPkg::Lock::Timeout=300 "$@"
    } 9> "$CACHE/apt.lock" > "$log" 2>&1 < /dev/null || {
        tail -n 40 "$log"
        die "apt-get $* failed"
    }
}

# need_unpacked COMMAND:PACKAGE…: the same of packages that would start a server or a timer here at each boot. They are
# unpacked into the cache, with the libraries that are not here. Adds their directories to UNPACKED.
UNPACKED=()
need_unpacked() {
    local pair package dir
    for pair in "$@"; do
        package=${pair#*:}
        case $(command -v "${pair%%:*}") in '' | "$CACHE"/*) ;; *) continue ;; esac
        dir=$CACHE/unpacked-$(debian)-$package
        unpack "$dir" "$package"
        [ -x "$dir/bin/${pair%%:*}" ] || die "Debian's $package has no ${pair%%:*}"
        UNPACKED+=("$dir")
        [[ :$PATH: == *:$dir/bin:* ]] || PATH=$dir/bin:$PATH
    done
}

# unpack DIR PACKAGE…: once. In DIR/bin is each of their commands, with their libraries.
unpack() {
    local dir=$1 new=$1.new deb command libraries=usr/lib/x86_64-linux-gnu
    [ ! -e "$dir" ] || return 0
    is_here apt-get || die "missing here: Debian's packages ${*:2}; install these and try again"
    say "unpacking ${*:2} into $dir"
    need_root "to get packages" "apt-get install -y --no-install-recommends ${*:2}"
    rm -rf "$new" 2> /dev/null || as_root rm -rf "$new"
    mkdir -p "$new/debs/partial" "$new"/usr/{bin,sbin,lib}
    timed apt apt_get install --yes --download-only -o Dir::Cache::archives="$new/debs" "${@:2}"
    for deb in "$new"/debs/*.deb; do dpkg-deb --extract "$deb" "$new"; done
    rm -rf "$new/debs" 2> /dev/null || as_root rm -rf "$new/debs"
    # Whether these are below /usr depends on the Debian.
    for deb in bin sbin lib; do [ ! -e "$new/$deb" ] || { cp -a "$new/$deb/." "$new/usr/$deb/" && rm -r "${new:?}/$deb"; }; done
    # fish finds its files so.
    [ ! -d "$new/etc" ] || ln -s ../etc "$new/usr/"
    mkdir -p "$new/bin"
    for command in "$new"/usr/{bin,sbin}/*; do
        [ -x "$command" ] || continue
        # The inner shell expands these.
        # shellcheck disable=SC2016
        printf '#!/bin/sh\nLD_LIBRARY_PATH=%q exec %q "$@"\n' "$dir/$libraries:$dir/$libraries/systemd:$dir/usr/lib/man-db" \
            "$dir${command#"$new"}" > "$new/bin/${command##*/}"
    done
    chmod +x "$new"/bin/* 2> /dev/null || true
    # The driver runs no tool of another user, and in a guest these are among its tools.
    as_root chown -R 0:0 "$new"
    mv "$new" "$dir"
}
