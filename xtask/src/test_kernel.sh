# Creates the kernel for the virtual machine in which tests use simulated hardware: Debian's own, with its modules i2c-dev
# and i2c-stub, and with gpio-sim, which Debian does not build, from Debian's source of the same version. Installs nothing.
# Arguments: the folder to work in, and the folder for the results.
set -eu
work=$1
result=$2
cd "$work"

depends() {
    apt-cache depends --no-recommends --no-suggests "$1" | sed -n 's/^ *Depends: //p'
}
image=$(depends linux-image-amd64 | grep '^linux-image-' | head -n 1)
if [ -z "$image" ]; then
    echo 'apt has no linux-image-amd64: is this Debian, and has it run `apt-get update`?' >&2
    exit 1
fi
release=${image#linux-image-}
headers=linux-headers-$release
parts=$(depends "$headers" | grep -E '^linux-(headers|kbuild)-')
version=$(echo "$release" | cut -d . -f 1,2)
apt-get -q download "$image" "$headers" $parts "linux-source-$version"

unpack() {
    dpkg-deb --fsys-tarfile "$1"_*.deb | tar -x -C "$work" --wildcards "$2"
}
unpack "$image" './boot/vmlinuz-*'
for module in drivers/i2c/i2c-dev drivers/i2c/i2c-stub fs/configfs/configfs; do
    unpack "$image" "*/$module.ko*"
done
for part in $headers $parts; do
    unpack "$part" '*'
done
# The headers expect to be installed.
sed -i "s#/usr/src/#$work/usr/src/#" "usr/src/$headers/Makefile"

mkdir module
sources=linux-source-$version
# tar stops reading the archive after the last of these files. Not every version has all of them.
dpkg-deb --fsys-tarfile "$sources"_*.deb | tar -xO "./usr/src/$sources.tar.xz" | xz -dc |
    tar -x --occurrence=1 "$sources/drivers/gpio/gpio-sim.c" "$sources/drivers/gpio/gpiolib.h" \
        "$sources/kernel/irq/irq_sim.c" 2> /dev/null || true
cp "$sources/drivers/gpio/gpio-sim.c" module/gpio-sim-main.c
cp "$sources/drivers/gpio/gpiolib.h" module/
# It is written as a part of the kernel itself, so it uses a function that is not available to modules.
sed 's/irq_to_desc(irqnum)/irq_data_to_desc(irq_get_irq_data(irqnum))/' "$sources/kernel/irq/irq_sim.c" > module/irq_sim.c
printf 'obj-m := gpio-sim.o\ngpio-sim-y := gpio-sim-main.o irq_sim.o\n' > module/Kbuild
make -s -C "usr/src/$headers" "M=$work/module" CC=gcc modules

mkdir -p made
cp boot/vmlinuz-* made/vmlinuz
find lib -name '*.ko.xz' -exec xz -d {} +
find lib module -name '*.ko' -exec cp {} made \;
rm -rf "$result"
mv made "$result"
