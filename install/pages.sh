#!/usr/bin/env bash
# Copies the pages, the examples and the manifests that a node has into a directory. A link to what is not
# copied, such as a page about the sources, becomes plain words.
#
#   install/pages.sh DIR
set -euo pipefail
if [[ $# != 1 || $1 == -* ]]; then
  sed -n '2,/^set /s/^# \{0,1\}//p' "$0"
  [[ ${1:-} == --help || ${1:-} == -h ]] && exit
  exit 2
fi
mkdir -p "$1"
out=$(realpath "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
tar --create --exclude='*.sh' --exclude='*.dot' --exclude=SUMMARY.md --exclude=book.toml \
  --exclude=docs/developers \
  README.md LICENSE CHANGELOG.md docs examples install/daemonset.yaml install/kustomization.yaml |
  tar --extract --directory "$out" --no-same-owner
find "$out" -name '*.md' | while read -r page; do
  { grep -oE '\]\([^):#]+[#)]' "$page" || true; } | sed 's/^..//; s/.$//' | sort -u | while read -r link; do
    [ -e "${page%/*}/$link" ] || sed -z -i "s|\[\([^]]*\)\](${link//./\\.}[^)]*)|\1|g" "$page"
  done
done
