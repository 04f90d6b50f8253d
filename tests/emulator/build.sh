#!/bin/sh
# MicroPython from Debian's packages alone: for the Raspberry Pi Pico (RP2040), FOLDER/pico.uf2, and for the Cortex-M3 that qemu
# emulates, FOLDER/cortex.elf.
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
folder=$(realpath -m "${1:?usage: build.sh FOLDER [trixie|forky|sid]}")
release=${2:-trixie}
case $release in
trixie | forky | sid) ;;
*)
    echo "expected trixie, forky or sid, seen $release" >&2
    exit 2
    ;;
esac
for name in sources micropython debian build cortex apt manifest.py pico.bin pico.uf2 cortex.elf; do
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

rm -rf micropython debian build cortex release # a build that ends early is of no release
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
echo 'freeze("$(PORT_DIR)/modules")' >"$folder/manifest.py"

jobs=$(nproc)
make -C mpy-cross -j"$jobs"
cmake -S ports/rp2 -B "$folder/build" -DMICROPY_BOARD=RPI_PICO -DPICO_NO_PICOTOOL=1 -DPICO_CLIB=newlib \
    -DMICROPY_FROZEN_MANIFEST="$folder/manifest.py"
make -C "$folder/build" -j"$jobs"
cd "$folder"
arm-none-eabi-objcopy -O binary build/firmware.elf pico.bin
python3 micropython/tools/uf2conv.py -b 0x10000000 -f 0xe48bff56 -c -o pico.uf2.part pico.bin
make -C micropython/ports/qemu -j"$jobs" BOARD=MPS2_AN385 BUILD="$folder/cortex" FROZEN_MANIFEST= MICROPY_HEAP_SIZE=1000000
cp cortex/firmware.elf cortex.elf.part
mv pico.uf2.part pico.uf2 # whoever finds an image takes it for whole
mv cortex.elf.part cortex.elf
ls -l "$folder/pico.uf2" "$folder/cortex.elf"
