# shellcheck shell=bash
# Sourced by tests/run.sh: the packages of this driver, and of one that says that it is older. What dpkg does with
# them on each Debian is in tests/guest/people/packages.rs.

# need_packages: makes them once, in packages/new and packages/old of DIR. OLDER names the older driver.
need_packages() {
    local version older
    [ ! -e "$DIR/packages" ] || return 0
    say "making packages"
    version=$("$DRIVER" --version)
    version=${version#flexvolume-lvm }
    if [ -n "${OLDER:-}" ]; then
        install "$OLDER" "$DIR/older"
    else
        # As long as this one: it is written over it.
        older=0.1.$(printf "%0$((${#version} - 4))d" 0)
        LC_ALL=C sed "s/${version//./\\.}/$older/g" "$DRIVER" > "$DIR/older"
        chmod +x "$DIR/older"
    fi
    mkdir "$DIR/packages.new"
    { timed packages install/package.sh "$(uname -m)" "$DRIVER" "$DIR/packages.new/new" &&
        timed packages install/package.sh "$(uname -m)" "$DIR/older" "$DIR/packages.new/old"; } ||
        die "the packages could not be made"
    mv "$DIR/packages.new" "$DIR/packages"
}

# The linters, and rpm with its scripts in a tree of its own.
packages() {
    local case passed=0 cases=(lintian_says_nothing rpmlint_says_nothing made_again_they_are_the_same every_link_leads_somewhere
        "in_a_tree files" "in_a_tree life" "in_a_tree fails")
    need lintian:lintian rpm:rpm rpmlint:rpmlint busybox:busybox-static
    need_packages
    for case in "${cases[@]}"; do
        say "packages: $case"
        # shellcheck disable=SC2086
        if timed packages $case > "$DIR/package.log" 2>&1; then
            passed=$((passed + 1))
        else
            cat "$DIR/package.log"
            failed "packages: $case"
        fi
    done
    echo "packages ${#cases[@]} $passed" >> "$DIR/counts"
}

# Its versions have two names for one thing, and each executable other bytes, so that an override may find
# nothing.
lintian_says_nothing() {
    lintian --allow-root --pedantic --display-info --tag-display-limit 0 "$DIR"/packages/new/*.deb |
        { grep -vE '^N: |: unused-override (statically-linked|shared-library|spelling-error)' || true; } | tee "$DIR/said" &&
        [ ! -s "$DIR/said" ]
}

rpmlint_says_nothing() {
    rpmlint --config install/rpm/rpmlint.toml "$DIR"/packages/new/*.rpm | tee "$DIR/said" &&
        grep -q ' 0 errors, 0 warnings' "$DIR/said"
}

# Whoever makes them, wherever he is.
made_again_they_are_the_same() {
    (umask 077 && TZ=Asia/Tokyo LC_ALL=C.UTF-8 install/package.sh "$(uname -m)" "$DRIVER" "$DIR/packages/again") &&
        diff -r "$DIR/packages/new" "$DIR/packages/again"
}

# Prints what the pages below a directory link to or name by a path, and is not there. Scripts are in a clone.
dead_links() { # the directory
    local page link
    find "$1" -name '*.md' | while read -r page; do
        grep -oE '\]\([^):#]+[#)]' "$page" | sed 's/^..//; s/.$//' | while read -r link; do
            [ -e "${page%/*}/$link" ] || echo "$page: $link"
        done
        # shellcheck disable=SC2016
        grep -oE '`(docs|examples|install)/[^` ]+`' "$page" | tr -d '`' | grep -v '\.sh$' | while read -r link; do
            [ -e "$1/$link" ] || echo "$page: $link"
        done
    done
    # What pages and man pages say is among the examples.
    for link in LICENSE CHANGELOG.md examples/{config.toml,pod-inline.yaml,monitoring/{alerts.yaml,dashboard.json}}; do
        [ -e "$1/$link" ] || echo "no $link"
    done
}

every_link_leads_somewhere() {
    local tree=$DIR/packages/tree
    mkdir -p "$tree"
    dpkg-deb --extract "$DIR"/packages/new/*.deb "$tree/deb"
    rpm2cpio "$DIR"/packages/new/*.rpm | (mkdir "$tree/rpm" && cd "$tree/rpm" && busybox cpio -id)
    for tree in "$tree"/*; do dead_links "$tree/usr/share/doc/flexvolume-lvm"; done | tee "$DIR/said" && [ ! -s "$DIR/said" ]
}

in_a_tree() { as_root tests/rpm.sh "$DIR/packages" "$1"; }
