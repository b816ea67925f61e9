# shellcheck shell=bash
# Sourced by tests/run.sh: the packages of this driver, and of one that says that it is older.

# need_packages: makes them once, in packages/new and packages/old of DIR.
need_packages() {
    local version older native=$DIR/lvm
    [ ! -e "$DIR/packages" ] || return 0
    say "making packages"
    version=$("$native" --version)
    version=${version#flexvolume-lvm }
    # As long as this one: it is written over it.
    older=0.1.$(printf "%0$((${#version} - 4))d" 0)
    LC_ALL=C sed "s/${version//./\\.}/$older/g" "$native" > "$DIR/older"
    chmod +x "$DIR/older"
    mkdir "$DIR/packages.new"
    install/package.sh "$(uname -m)" "$native" "$DIR/packages.new/new" &&
        install/package.sh "$(uname -m)" "$DIR/older" "$DIR/packages.new/old" ||
        die "the packages could not be made"
    mv "$DIR/packages.new" "$DIR/packages"
}
