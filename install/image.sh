#!/usr/bin/env bash
# Makes the container image with tar alone: no daemon, no root, the same bytes every time.
#
#   install/image.sh [ARCHIVE]     (default: flexvolume-lvm.tar)
#
# DRIVER   the executable (default: what `cargo build --release` built in this checkout)
# IMAGE    the image's name (default: localhost/flexvolume-lvm:VERSION)
#
# The archive is an OCI layout that docker reads too. Load it on a node with one of
#   ctr -n k8s.io images import ARCHIVE      k3s ctr images import ARCHIVE
#   podman load -i ARCHIVE                   docker load -i ARCHIVE
# or send it to a registry with `skopeo copy oci-archive:ARCHIVE docker://…`.
set -euo pipefail

fail() { printf 'image.sh: %s\n' "$*" >&2; exit 1; }

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
archive=${1:-flexvolume-lvm.tar}
case $archive in
  -*)
    sed -n '2,/^set /s/^# \{0,1\}//p' "$0"
    [[ $archive == --help || $archive == -h ]] && exit
    exit 2
    ;;
esac
driver=${DRIVER:-$top/target/$(uname -m)-unknown-linux-gnu/release/lvm}
# A bare name would be looked for in PATH, where `lvm` is LVM's own command.
[[ $driver == */* ]] || driver=./$driver
[[ -f $driver && -x $driver ]] ||
  fail "there is no executable $driver: run \`cargo build --release\` first"
version=$("$driver" --version) || version=none
[[ $version =~ ^flexvolume-lvm\ [0-9] ]] || fail "$driver is not this driver"
name=${IMAGE:-localhost/flexvolume-lvm:${version#flexvolume-lvm }}
[[ $name =~ ^[A-Za-z0-9./:_-]+:[A-Za-z0-9._-]+$ ]] || fail "IMAGE '$name': not NAME:TAG"

# The image is for the machine that the executable is for: byte 18 of an ELF file says which.
case $(od -An -tu2 -j18 -N2 "$driver" | tr -d ' ') in
  62) arch=amd64 ;;
  183) arch=arm64 ;;
  *) fail "$driver is for neither x86_64 nor aarch64" ;;
esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
blobs=$work/image/blobs/sha256
mkdir -p "$work/root" "$blobs"

pack() { # archive, directory, names…
  local out=$1 dir=$2
  shift 2
  tar --create --file "$out" --directory "$dir" --format=ustar --sort=name --mtime=@0 \
    --owner=0 --group=0 --numeric-owner "$@"
}

# Moves a file among the blobs. Sets `digest` and `size`.
blob() {
  digest=$(sha256sum <"$1" | cut -d' ' -f1)
  size=$(stat -c %s "$1")
  mv "$1" "$blobs/$digest"
}

install -m 0755 "$driver" "$work/root/lvm"
pack "$work/layer" "$work/root" lvm
blob "$work/layer"
layer=$digest layer_size=$size

cat >"$work/config" <<END
{"architecture":"$arch","os":"linux","config":{"Entrypoint":["/lvm"],"Cmd":["install","--follow"],"WorkingDir":"/"},"rootfs":{"type":"layers","diff_ids":["sha256:$layer"]},"history":[{"comment":"install/image.sh"}]}
END
blob "$work/config"
config=$digest config_size=$size

cat >"$work/manifest" <<END
{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"sha256:$config","size":$config_size},"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar","digest":"sha256:$layer","size":$layer_size}]}
END
blob "$work/manifest"

cat >"$work/image/index.json" <<END
{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:$digest","size":$size,"platform":{"architecture":"$arch","os":"linux"},"annotations":{"io.containerd.image.name":"$name","org.opencontainers.image.ref.name":"$name"}}]}
END
# What docker reads instead of index.json.
cat >"$work/image/manifest.json" <<END
[{"Config":"blobs/sha256/$config","RepoTags":["$name"],"Layers":["blobs/sha256/$layer"]}]
END
echo '{"imageLayoutVersion":"1.0.0"}' >"$work/image/oci-layout"

pack "$archive.part" "$work/image" oci-layout index.json manifest.json blobs
mv "$archive.part" "$archive"
echo "$archive: $name, $arch, sha256:$digest"
