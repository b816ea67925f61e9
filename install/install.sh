#!/usr/bin/env bash
# Installs the driver that this checkout builds on this node: `flexvolume-lvm install`, see --help.
# DRIVER names another executable.
set -euo pipefail

fail() { printf 'install.sh: %s\n' "$*" >&2; exit 1; }

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
driver=${DRIVER:-$top/target/$(uname -m)-unknown-linux-gnu/release/lvm}
# A bare name would be looked for in PATH, where `lvm` is LVM's own command.
[[ $driver == */* ]] || driver=./$driver
if ! [[ -f $driver && -x $driver ]]; then
  [[ -z ${DRIVER:-} ]] || fail "DRIVER: there is no executable $DRIVER"
  command -v cargo >/dev/null ||
    fail "there is no $driver; build it with \`cargo build --release\`"
  (cd "$top" && cargo build --release --bin lvm)
fi
exec "$driver" install "$@"
