#!/bin/sh
# MicroPython from Debian's packages alone: for the Raspberry Pi Pico (RP2040), FOLDER/pico.uf2, and for the Cortex-M3 that qemu
# emulates, FOLDER/cortex.elf. With this clone's firmware frozen in, as a release ships it: FOLDER/ssdrig-pico.uf2 and
# FOLDER/ssdrig-pico2.uf2 (RP2350); not from trixie, whose MicroPython is older than the firmware wants on a board.
#
#   tests/emulator/build.sh FOLDER [trixie|forky|sid]
#
# The release says which MicroPython: trixie (Debian 13, the default) has 1.25, forky and sid have 1.26.1 (2026-11-23).
# Needs cmake, make, gcc, python3, gcc-arm-none-eabi, libnewlib-arm-none-eabi and libstdc++-arm-none-eabi-newlib. The sources are
# fetched by apt from this machine's own mirror, with lists and cache of their own: its package sources stay as they are.
#
# `./ssdrig setup --emulator [RELEASE]` runs this for .setup/emulator. Another folder's image: SSDRIG_UF2=FOLDER/pico.uf2 ./ssdrig test tests/test_emulated*.py
# Left out are what Debian does not ship and the firmware does not use: TLS (mbedtls), cryptolib, SHA-1, the frozen modules of micropython-lib.
set -eu
unset PYTHONSAFEPATH PYTHONPATH # MicroPython's tools import modules of their folder
firmware=$(realpath "$(dirname "$0")/../../firmware")
folder=$(realpath -m "${1:?usage: build.sh FOLDER [trixie|forky|sid]}")
release=${2:-trixie}
case $release in
trixie | forky | sid) ;;
*)
    echo "expected trixie, forky or sid, seen $release" >&2
    exit 2
    ;;
esac
for name in sources micropython debian build build-pico build-pico2 cortex apt manifest.py frozen.py pico.bin pico.uf2 cortex.elf \
    ssdrig-pico.uf2 ssdrig-pico2.uf2; do
    if [ -e "$folder/$name" ] && [ ! -e "$folder/apt/status" ]; then # somebody else's
        echo "expected a folder that this program made, or one without $name, seen $folder; it would be overwritten" >&2
        exit 2
    fi
done
rm -rf "$folder/sources" # of another release
mkdir -p "$folder"
if [ ! -e "$folder/apt/status" ]; then # by this it knows its folder again, also when it is killed here
    made=$(mktemp -d "$folder/.apt.XXXXXX")
    : >"$made/status"
    mv "$made" "$folder/apt"
fi
mkdir -p "$folder/apt/lists/partial" "$folder/apt/archives/partial" "$folder/sources"
cd "$folder"

mirror=$(apt-get indextargets --format '$(ORIGIN)|$(COMPONENT)|$(RELEASE)|$(REPO_URI)' 'Created-By: Packages' |
    awk -F'|' '$1 == "Debian" && $2 == "main" && $3 !~ /-/ { print $4; exit }')
: "${mirror:?expected a Debian mirror among the apt sources of this machine, seen none: add one and run apt-get update}"
for kind in deb deb-src; do
    echo "$kind [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $release main"
done >apt/sources.list
get() {
    apt-get -q -o Dir::Etc::sourcelist="$folder/apt/sources.list" -o Dir::Etc::sourceparts=/dev/null -o Dir::State::lists="$folder/apt/lists" \
        -o Dir::State::status="$folder/apt/status" -o Dir::Cache::archives="$folder/apt/archives" \
        -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o APT::Sandbox::User=root "$@"
}
get update
(cd sources && get source --download-only micropython && get download pico-sdk-source tinyusb-source)

rm -rf micropython debian build build-pico build-pico2 cortex release ssdrig-*.uf2 # a build that ends early is of no release
mkdir micropython
tar xf sources/micropython_*.orig.tar.xz -C micropython --strip-components=1
for package in sources/*.deb; do dpkg-deb -x "$package" debian; done
cd micropython
rm -rf lib/tinyusb lib/pico-sdk
ln -s "$folder/debian/usr/src/tinyusb" lib/tinyusb
ln -s "$folder/debian/usr/src/pico-sdk" lib/pico-sdk
touch lib/micropython-lib/README.md # whether it is there is asked; it is not used
sed -i 's/set(MICROPY_SSL_MBEDTLS ON)/set(MICROPY_SSL_MBEDTLS OFF)/; /micropy_lib_mbedtls/d; /mbedtls_port.c/d' ports/rp2/CMakeLists.txt
for name in MICROPY_SSL_MBEDTLS MICROPY_PY_SSL MICROPY_PY_CRYPTOLIB MICROPY_PY_HASHLIB_SHA1; do
    sed -i "s/^#define $name .*/#define $name (0)/" ports/rp2/mpconfigport.h
done
if [ -d lib/pico-sdk/src/rp2_common/pico_platform_common ]; then # pico-sdk 2.2; MicroPython 1.26 was made with 2.1.1
    sed -i 's/^    pico_platform$/&\n    pico_platform_common/' ports/rp2/CMakeLists.txt
fi
# the stack of 8 KiB takes both scratch banks, as on the RP2040; this linker wants to see that
sed -i 's/\(SCRATCH_X.*LENGTH = \)4k/\10k/; s/SCRATCH_Y(rwx) : ORIGIN = 0x20081000, LENGTH = 4k/SCRATCH_Y(rwx) : ORIGIN = 0x20080000, LENGTH = 8k/' \
    ports/rp2/memmap_mp_rp2350.ld
# frozen machine code of Thumb loads its constants relative to a multiple of 4; at a multiple of 2 they are others
sed -i 's/__attribute__ ((aligned (2)))/__attribute__ ((aligned (4)))/' tools/mpy-tool.py
grep -q 'aligned (4)' tools/mpy-tool.py
echo 'freeze("$(PORT_DIR)/modules")' >"$folder/manifest.py"
{
    cat "$folder/manifest.py"
    echo "freeze(\"$firmware\")"
} >"$folder/frozen.py"

jobs=$(nproc)
make -C mpy-cross -j"$jobs"
image() { # NAME BOARD FAMILY MANIFEST BUILD: FOLDER/NAME.uf2.part
    cmake -S ports/rp2 -B "$folder/$5" -DMICROPY_BOARD="$2" -DPICO_NO_PICOTOOL=1 -DPICO_CLIB=newlib -DMICROPY_FROZEN_MANIFEST="$folder/$4"
    make -C "$folder/$5" -j"$jobs"
    arm-none-eabi-objcopy -O binary "$folder/$5/firmware.elf" "$folder/$1.bin"
    python3 tools/uf2conv.py -b 0x10000000 -f "$3" -c -o "$folder/$1.uf2.part" "$folder/$1.bin"
}
image pico RPI_PICO 0xe48bff56 manifest.py build
images=pico
if [ "$release" != trixie ]; then
    image ssdrig-pico RPI_PICO 0xe48bff56 frozen.py build-pico
    image ssdrig-pico2 RPI_PICO2 0xe48bff59 frozen.py build-pico2
    images="pico ssdrig-pico ssdrig-pico2"
fi
cd "$folder"
make -C micropython/ports/qemu -j"$jobs" BOARD=MPS2_AN385 BUILD="$folder/cortex" FROZEN_MANIFEST= MICROPY_HEAP_SIZE=1000000
cp cortex/firmware.elf cortex.elf.part
for name in $images; do
    mv $name.uf2.part $name.uf2 # whoever finds an image takes it for whole
done
mv cortex.elf.part cortex.elf
ls -l "$folder"/*.uf2 "$folder/cortex.elf"
