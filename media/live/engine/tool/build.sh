#!/bin/sh
# Builds MediaMTX, the media engine, from the source that go.mod pins:
#
#   build.sh OUT      writes the program to OUT, for GOARCH if that is set
#
# The same source and the same Go give the same bytes, wherever it is built. The module lacks
# files that its own release script makes: a version, the script of a player page that the
# product does not serve, and, for ARM, a program for a camera. About a minute the first time.
set -eu
out=$(realpath -m "$1")
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
cp "$here/go.mod" "$here/go.sum" "$here/tool.go" "$work"
cd "$work"
go mod vendor -e
engine=vendor/github.com/bluenviron/mediamtx
version=$(awk '/bluenviron\/mediamtx v/ {print $NF; exit}' go.mod)
printf %s "$version" > "$engine/internal/core/VERSION"
echo "/* the product brings its own player */" > "$engine/internal/servers/hls/hls.min.js"
for bits in 32 64; do # the program for a camera of the Raspberry Pi, which builds for ARM hold
	mkdir -p "$engine/internal/staticsources/rpicamera/mtxrpicam_$bits"
	echo "no camera is used" > "$engine/internal/staticsources/rpicamera/mtxrpicam_$bits/none"
done
mkdir -p "$(dirname "$out")"
CGO_ENABLED=0 go build -mod=vendor -trimpath -ldflags='-s -w -buildid=' -o "$out" github.com/bluenviron/mediamtx
[ "$(go env GOARCH)" != "$(go env GOHOSTARCH)" ] || "$out" --version
