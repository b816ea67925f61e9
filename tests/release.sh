# shellcheck shell=bash
# Sourced by tests/run.sh: the release of this commit, made twice.

RELEASE_RAN=0 RELEASE_PASSED=0

# expect WHAT COMMAND…: counts, and names what is not so.
expect() {
    local what=$1
    shift
    RELEASE_RAN=$((RELEASE_RAN + 1))
    if "$@"; then RELEASE_PASSED=$((RELEASE_PASSED + 1)); else failed "release: $what"; fi
}

same_lines() { diff <(LC_ALL=C sort -u "$1") <(LC_ALL=C sort -u "$2"); }

# refused WORDS COMMAND…: it fails, and says so.
refused() {
    local words=$1 said
    shift
    said=$("$@" 2>&1) && return 1
    grep -qF -- "$words" <<< "$said" || { echo "$said"; return 1; }
}

# release: in two new clones, in directories of other lengths, with other umasks, languages, time zones and
# directories of cargo's own. What cargo builds of dependencies stays in the cache, for each clone's path its own: there they
# were built at two places, once. Else one is made for this architecture alone, of the driver that is built already.
release() { # `twice`
    local version top=$CACHE/release one two clone arch
    local -x ARCHES='x86_64 aarch64' BUILT_x86_64=''
    [ "${1:-}" = twice ] || ARCHES=x86_64 BUILT_x86_64=$DRIVER
    need jq:jq
    version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
    one=$top/a two=$top/at-the-end-of-a-longer-path/b
    mkdir -p "$top" "$DIR/release"
    exec 8> "$top/lock"
    flock 8
    unoptimized "$top"
    for clone in "$one" "$two"; do
        rm -rf "$clone" "$clone.out"
        git clone --quiet --no-hardlinks . "$clone"
    done
    say "release $version of $(git rev-parse --short HEAD) for $ARCHES"
    mkdir -p "$two.cargo"
    ln -sfn "${CARGO_HOME:-$HOME/.cargo}"/* "$two.cargo/"
    (umask 022 && LC_ALL=C TZ=UTC CARGO_TARGET_DIR=$one.target timed release "$one/install/release.sh" --trial "$version" "$one.out") ||
        die "there is no release"
    if [ "${1:-}" = twice ]; then
        (umask 077 && LC_ALL=C.UTF-8 TZ=Pacific/Apia CARGO_HOME=$two.cargo CARGO_TARGET_DIR=$two.target \
            timed 'second release' "$two/install/release.sh" --trial "$version" "$two.out") ||
            die "there is no second release"
        expect 'two releases differ' diff --recursive "$one.out" "$two.out"
    fi
    expect 'a checksum is wrong' sh -c "cd '$one.out' && sha256sum --check --quiet --strict SHA256SUMS"
    (cd "$one.out" && for file in *; do echo "$file"; done) > "$DIR/release/names"
    sed "s/VERSION/$version/" << 'END' | grep -E "$(sed 's/x86_64/&|amd64/; s/aarch64/&|arm64/; s/ /|/' <<< "$ARCHES")|SUMS|image" > "$DIR/release/all"
SHA256SUMS
flexvolume-lvm-VERSION-1.aarch64.rpm
flexvolume-lvm-VERSION-1.x86_64.rpm
flexvolume-lvm-VERSION-aarch64.cdx.json
flexvolume-lvm-VERSION-aarch64.licenses.txt
flexvolume-lvm-VERSION-aarch64.tar.gz
flexvolume-lvm-VERSION-image.tar
flexvolume-lvm-VERSION-x86_64.cdx.json
flexvolume-lvm-VERSION-x86_64.licenses.txt
flexvolume-lvm-VERSION-x86_64.tar.gz
flexvolume-lvm_VERSION-1_amd64.deb
flexvolume-lvm_VERSION-1_arm64.deb
END
    expect 'files are missing or too many' same_lines "$DIR/release/all" "$DIR/release/names"
    mkdir "$DIR/release/image"
    tar -xf "$one.out/flexvolume-lvm-$version-image.tar" -C "$DIR/release/image"
    for arch in $ARCHES; do release_of "$arch" "$one.out" "$version"; done

    expect 'another version is released' refused "is not of version 9.9.9" "$two/install/release.sh" 9.9.9
    expect 'a full directory is taken' refused "is not empty" "$two/install/release.sh" --trial "$version" "$one.out"
    touch "$two/src/new.rs"
    expect 'a dirty checkout is released' refused "not clean" "$two/install/release.sh" --trial "$version" "$two.dirty"
    sed -i 's|^homepage = .*|homepage = "https://x.invalid"|' "$two/Cargo.toml"
    sed -i "s|^## \[Unreleased\]|## [$version] - 2026-01-01|" "$two/CHANGELOG.md"
    expect 'a placeholder is released' refused "fill in" "$two/install/release.sh" "$version" "$two.dirty"
    rm -rf "$one" "$one.out" "$two" "$two.out"
    exec 8>&-
    echo "release $RELEASE_RAN $RELEASE_PASSED" >> "$TOP/counts"
}

# release_of ARCH OUT VERSION: what is made for one architecture.
release_of() {
    local arch=$1 name=flexvolume-lvm-$3-$1 deb=amd64 dir=$DIR/release/$1 listed
    local packaged=./usr/libexec/flexvolume-lvm/lvm
    [ "$arch" = x86_64 ] || deb=arm64
    listed=$2/$name.licenses.txt
    mkdir "$dir"
    tar -xzf "$2/$name.tar.gz" -C "$dir"
    printf '%s\n' CHANGELOG.md LICENSE README.md completions docs examples install licenses.txt lvm share > "$dir/wanted"
    (cd "$dir/$name" && for file in *; do echo "$file"; done) > "$dir/found"
    expect "$arch: the archive has other files" same_lines "$dir/wanted" "$dir/found"
    expect "$arch: a link leads nowhere" [ -z "$(dead_links "$dir/$name")" ]
    printf '%s\n' _flexvolume-lvm flexvolume-lvm.bash flexvolume-lvm.fish > "$dir/wanted"
    (cd "$dir/$name/completions" && for file in *; do echo "$file"; done) > "$dir/found"
    expect "$arch: completions have other names" same_lines "$dir/wanted" "$dir/found"
    expect "$arch: there is no man page" [ -e "$dir/$name/share/man/man8/flexvolume-lvm-status.8" ]
    expect "$arch: the archive has other licences" cmp "$listed" "$dir/$name/licenses.txt"
    [ "$arch" != "$(uname -m)" ] ||
        expect "$arch: the executable says another version" [ "$("$dir/$name/lvm" --version)" = "flexvolume-lvm $3" ]

    cargo tree --locked --package flexvolume-lvm --edges normal --prefix none --target "$arch-unknown-linux-gnu" | cut -d ' ' -f 1,2 > "$dir/crates"
    jq -r '.metadata.component, .components[] | select(.purl // "" | startswith("pkg:cargo/")) | "\(.name) v\(.version)"' \
        "$2/$name.cdx.json" > "$dir/sbom"
    expect "$arch: the SBOM has other crates" same_lines "$dir/crates" "$dir/sbom"
    printf '%s\n' glibc libgcc rust-std > "$dir/others"
    jq -r '.components[] | select(.purl // "" | startswith("pkg:cargo/") | not) | .name' "$2/$name.cdx.json" > "$dir/not-crates"
    expect "$arch: the SBOM has not what is linked and no crate" same_lines "$dir/others" "$dir/not-crates"
    # Its text is a heading's, which names the file.
    sed -n 's/^\([^ ]* [0-9][^ ,]*\), [A-Z].*/\1/p' "$listed" | sed 's/ / v/' > "$dir/texts"
    grep -vE '^flexvolume-lvm(-driver)? ' "$dir/crates" > "$dir/others"
    expect "$arch: a crate has no licence text" same_lines "$dir/others" "$dir/texts"
    expect "$arch: glibc's licence is missing" grep -q 'GNU LESSER GENERAL PUBLIC LICENSE' "$listed"

    local image=$DIR/release/image/blobs/sha256 blob
    blob=$(jq -r '.manifests[0].digest[7:]' "$DIR/release/image/index.json")
    # Of one architecture there is no list.
    ! jq -e .manifests "$image/$blob" > /dev/null || blob=$(jq -r ".manifests[] | select(.platform.architecture == \"$deb\") | .digest[7:]" "$image/$blob")
    blob=$(jq -r '.layers[0].digest[7:]' "$image/$blob")
    mkdir "$dir/layer"
    tar -xf "$image/$blob" -C "$dir/layer"
    expect "$arch: the image has another executable" cmp "$dir/layer/lvm" "$dir/$name/lvm"
    expect "$arch: the image has other licences" cmp "$dir/layer/licenses.txt" "$listed"
    dpkg-deb --fsys-tarfile "$2/flexvolume-lvm_$3-1_$deb.deb" | tar -xO "$packaged" > "$dir/packaged" || true
    expect "$arch: the package has another executable" cmp "$dir/packaged" "$dir/$name/lvm"
}
