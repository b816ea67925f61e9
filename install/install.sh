#!/usr/bin/env bash
# Installs the driver that this checkout builds on this node: `lvm install`, see --help.
# DRIVER names another executable.
set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
driver=${DRIVER:-$top/target/$(uname -m)-unknown-linux-gnu/release/lvm}
if [[ ! -x $driver ]]; then
  command -v cargo >/dev/null || {
    echo "install.sh: there is no $driver; build it with \`cargo build --release\`" >&2
    exit 1
  }
  (cd "$top" && cargo build --release --bin lvm)
fi
exec "$driver" install "$@"
