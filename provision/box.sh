#!/usr/bin/env bash
# Makes a Vagrant box of nothing but Debian's packages, with the lab in it, ready to run: for
# classrooms without the internet, and for whoever would rather know what is in a box.
#
#     box.sh [--bare] [--suite SUITE] [--format libvirt|virtualbox|both] [FOLDER]
#
#   --bare    without the lab: what `vagrant up` puts there it then fetches itself
#   --suite   bookworm (as is) or trixie
#   FOLDER    where the boxes go (.), as closlab-SUITE-FORMAT.box
#
# Root, some 8 GB of disk while it works, a loop device, and:
#     apt-get install debootstrap extlinux fdisk qemu-utils
# Afterwards, anywhere:
#     vagrant box add --name closlab/bookworm closlab-bookworm-libvirt.box
#     CLOSLAB_BOX=closlab/bookworm vagrant up
#
# The disk is one partition, booted by extlinux the way PCs always did, so amd64 only.

set -euo pipefail

given=("$@")
say() { printf 'box: %s\n' "$*" >&2; }
die() { say "$1"; exit 1; }

source=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd)
suite=bookworm formats=both with_lab=yes out=.
while [ $# -gt 0 ]; do
    case $1 in
        --bare) with_lab= ;;
        --suite) suite=${2:?--suite needs a name}; shift ;;
        --format) formats=${2:?--format needs libvirt, virtualbox or both}; shift ;;
        -*) sed -n '2,19s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
        *) out=$1 ;;
    esac
    shift
done
case $formats in
    both) formats="libvirt virtualbox" ;;
    libvirt | virtualbox) ;;
    *) die "there is no format '$formats'; choose libvirt, virtualbox or both" ;;
esac
[ "$(id -u)" = 0 ] || die "run this as root:  sudo bash $0"
[ "$(dpkg --print-architecture)" = amd64 ] || die "this makes boxes for amd64, on amd64"
missing=()
for pair in debootstrap:debootstrap extlinux:extlinux sfdisk:fdisk qemu-img:qemu-utils; do
    command -v "${pair%%:*}" >/dev/null || missing+=("${pair#*:}")
done
boot_code=/usr/lib/EXTLINUX/mbr.bin # extlinux brings it
[ ${#missing[@]} = 0 ] || die "first:  apt-get install --no-install-recommends ${missing[*]}"

# What is mounted here nobody else sees: a namespace that another program makes meanwhile would
# otherwise hold a copy, and the disk would be packed before all of it was written.
[ -n "${BOX_ALONE:-}" ] ||
    BOX_ALONE=yes exec unshare --mount --propagation private bash "${BASH_SOURCE[0]}" "${given[@]}"

# Vagrant's own key, which it replaces by one of its making when it first meets a machine.
vagrant_key="ssh-rsa AAAAB3NzaC1yc2EAAAABIwAAAQEA6NF8iallvQVp22WDkTkyrtvp9eWW6A8YVr+kz4TjGYe7gHzIw\
+niNltGEFHzD8+v1I2YJ6oXevct1YeS0o9HZyN1Q9qgCgzUFtdOKLv6IedplqoPkcmF0aYet2PkEDo3MlTBckFXPITAMzF8dJS\
IFo9D8HfdOV0IAdx4O7PtixWKn5y2hMNG0zQPyUecp4pzC6kivAIhyfHilFR61RGL+GPXQ2MWZWFYbAGjyiYJnAmCP3NOTd0jM\
ZEnDkbUvxhMmBYSdETk1rRgm+R4LOzFUGaHqHDLKLX+FIPKcF96hrucXzcWyLbIbEgE98OHlnVYCzRdK8jlqm8tehUc9c9WhQ=\
= vagrant insecure public key"

mkdir -p "$out"
out=$(cd "$out" && pwd)
work=$(mktemp -d "$out/.box.XXXXXX")
root=$work/root disk=$work/disk.raw loop=

# Ends what still runs in there, and lets the disk go; fails if it is held nevertheless.
let_go() {
    local link
    for link in /proc/[0-9]*/root; do
        [ "$(readlink "$link" 2>/dev/null)" != "$root" ] || kill -KILL "$(basename "${link%/root}")"
    done
    # This machine's own, seen in there; whoever looks at them does not hold up the disk.
    local seen
    for seen in proc sys dev etc/resolv.conf etc/ssl/certs etc/pip.conf; do
        ! mountpoint -q "$root/$seen" || umount -R -l "$root/$seen"
    done
    local tries
    for tries in 1 2 3 4 5; do
        ! mountpoint -q "$root" || umount "$root" || { sleep "$tries"; continue; }
        [ -z "$loop" ] || losetup -d "$loop" 2>/dev/null || true
        [ -z "$(losetup -j "$disk" 2>/dev/null)" ] || { sleep "$tries"; continue; } # or it is to be
        loop=
        return 0
    done
    return 1
}
trap 'let_go || true; rm -rf --one-file-system "$work"' EXIT # never into what could not be let go

make_disk() {
    truncate -s 20G "$disk"
    sfdisk --quiet "$disk" <<<'start=2048, type=83, bootable'
    dd if="$boot_code" of="$disk" bs=440 count=1 conv=notrunc status=none
    loop=$(losetup --find --show --offset $((2048 * 512)) "$disk")
    # What extlinux can read.
    mkfs.ext4 -q -L closlab -O '^64bit,^metadata_csum' "$loop"
    mkdir "$root"
    mount "$loop" "$root"
}

# What reaches Debian's packages and Python's from here reaches them from in there, for as long as
# this takes: names, certificates, proxies.
as_here() {
    local kind
    for kind in proc sys dev; do mount --rbind --make-rslave "/$kind" "$root/$kind"; done
    mkdir -p "$root/run/here"
    cp -L /etc/resolv.conf "$root/run/here/resolv.conf"
    touch "$root/etc/resolv.conf"
    mount --bind "$root/run/here/resolv.conf" "$root/etc/resolv.conf"
    cp -r /etc/apt/apt.conf.d "$root/run/here/apt"
    mkdir -p "$root/etc/ssl/certs"
    mount --bind /etc/ssl/certs "$root/etc/ssl/certs"
    if [ -e /etc/pip.conf ]; then
        touch "$root/etc/pip.conf"
        mount --bind /etc/pip.conf "$root/etc/pip.conf"
    fi
}

inside() {
    chroot "$root" env DEBIAN_FRONTEND=noninteractive PATH="$PATH:/usr/sbin:/sbin" "$@"
}

install_debian() {
    say "installing Debian $suite"
    debootstrap --variant=minbase --include="systemd-sysv,dbus,udev,iproute2,ifupdown,\
isc-dhcp-client,openssh-server,sudo,rsync,python3,ca-certificates,curl,initramfs-tools,kmod,\
procps,locales" "$suite" "$root" >"$work/log" || die "debootstrap failed: $(tail -n 1 "$work/log")"
    as_here
    local proxies=("$root"/run/here/apt/*)
    for file in "${proxies[@]}"; do
        [ -e "$root/etc/apt/apt.conf.d/${file##*/}" ] ||
            { cp "$file" "$root/etc/apt/apt.conf.d/"; echo "${file##*/}" >>"$work/proxies"; }
    done
    inside apt-get -q update >>"$work/log"
    inside apt-get -q install -y --no-install-recommends linux-image-amd64 >>"$work/log"
}

make_bootable() {
    mkdir -p "$root/boot/extlinux"
    cat >"$root/boot/extlinux/extlinux.conf" <<'CONF'
DEFAULT linux
SERIAL 0
LABEL linux
  LINUX /vmlinuz
  INITRD /initrd.img
  APPEND root=LABEL=closlab rw net.ifnames=0 console=tty0 console=ttyS0
CONF
    extlinux --install "$root/boot/extlinux" >>"$work/log" 2>&1
    echo 'LABEL=closlab / ext4 defaults 0 1' >"$root/etc/fstab"
    printf 'auto lo eth0\niface lo inet loopback\niface eth0 inet dhcp\n' \
        >"$root/etc/network/interfaces"
    # No word of it is `closlab`: Vagrant would take the machine's name for known, and add none.
    echo box >"$root/etc/hostname"
    printf '127.0.0.1 localhost\n127.0.1.1 box\n' >"$root/etc/hosts"
    inside systemctl -q enable ssh serial-getty@ttyS0
}

# As Vagrant expects it: a user of that name who may do everything, and whom it knows how to reach.
add_vagrant() {
    inside useradd --create-home --shell /bin/bash vagrant
    echo 'vagrant ALL=(ALL) NOPASSWD: ALL' >"$root/etc/sudoers.d/vagrant"
    install -d -m 700 "$root/home/vagrant/.ssh"
    echo "$vagrant_key" >"$root/home/vagrant/.ssh/authorized_keys"
    chmod 600 "$root/home/vagrant/.ssh/authorized_keys"
    inside chown -R vagrant: /home/vagrant
}

install_lab() {
    say "installing the lab"
    mkdir -p "$root/vagrant"
    rsync --archive --exclude='/.venv*' --exclude=/.git --exclude=/runs --exclude='__pycache__' \
        --exclude='*.egg-info' "$source/" "$root/vagrant/"
    inside bash /vagrant/provision/provision.sh vagrant
    rm -rf "${root:?}/vagrant"
}

clean_up() {
    local file
    if [ -e "$work/proxies" ]; then
        while read -r file; do rm "$root/etc/apt/apt.conf.d/$file"; done <"$work/proxies"
    fi
    inside apt-get clean
    rm -rf "$root"/var/lib/apt/lists/* "$root"/etc/ssh/ssh_host_* "$root/home/vagrant/.cache/pip" \
        "$root/root/.cache"
    # Each machine makes its own.
    cat >"$root/etc/systemd/system/ssh-host-keys.service" <<'UNIT'
[Unit]
Description=Keys of this machine's SSH server
Before=ssh.service
ConditionPathExists=!/etc/ssh/ssh_host_ed25519_key

[Service]
Type=oneshot
ExecStart=/usr/bin/ssh-keygen -A

[Install]
WantedBy=multi-user.target
UNIT
    inside systemctl -q enable ssh-host-keys
    : >"$root/etc/machine-id"
    fstrim "$root" 2>/dev/null || true
    let_go || die "something still holds on to the disk"
    loop=$(losetup --find --show --offset $((2048 * 512)) "$disk")
    e2fsck -f -n "$loop" >>"$work/log" 2>&1 || die "the disk is not sound: $(tail -n 1 "$work/log")"
    losetup -d "$loop"
    loop=
}

pack_libvirt() {
    qemu-img convert -c -O qcow2 "$disk" "$work/libvirt/box.img"
    echo '{"provider": "libvirt", "format": "qcow2", "virtual_size": 20}' \
        >"$work/libvirt/metadata.json"
    echo 'Vagrant.configure("2") { |_| }' >"$work/libvirt/Vagrantfile"
}

pack_virtualbox() {
    qemu-img convert -O vmdk -o subformat=streamOptimized,adapter_type=lsilogic "$disk" \
        "$work/virtualbox/box-disk.vmdk"
    echo '{"provider": "virtualbox"}' >"$work/virtualbox/metadata.json"
    # Without VirtualBox's additions, which are not among Debian's packages, folders are copied.
    cat >"$work/virtualbox/Vagrantfile" <<'RUBY'
Vagrant.configure("2") do |config|
  config.vm.base_mac = "0800275C105A"
  config.vm.synced_folder ".", "/vagrant", type: "rsync"
end
RUBY
    local size capacity
    size=$(stat -c %s "$work/virtualbox/box-disk.vmdk")
    capacity=$(stat -c %s "$disk")
    cat >"$work/virtualbox/box.ovf" <<OVF
<?xml version="1.0"?>
<Envelope ovf:version="1.0" xml:lang="en-US" xmlns="http://schemas.dmtf.org/ovf/envelope/1"
    xmlns:ovf="http://schemas.dmtf.org/ovf/envelope/1"
    xmlns:rasd="http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/CIM_ResourceAllocationSettingData"
    xmlns:vssd="http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/CIM_VirtualSystemSettingData">
  <References>
    <File ovf:href="box-disk.vmdk" ovf:id="file1" ovf:size="$size"/>
  </References>
  <DiskSection>
    <Info>Disks</Info>
    <Disk ovf:capacity="$capacity" ovf:diskId="disk1" ovf:fileRef="file1"
        ovf:format="http://www.vmware.com/interfaces/specifications/vmdk.html#streamOptimized"/>
  </DiskSection>
  <NetworkSection>
    <Info>Networks</Info>
    <Network ovf:name="NAT"><Description>NAT</Description></Network>
  </NetworkSection>
  <VirtualSystem ovf:id="closlab-$suite">
    <Info>A machine</Info>
    <OperatingSystemSection ovf:id="96"><Info>Debian_64</Info></OperatingSystemSection>
    <VirtualHardwareSection>
      <Info>Hardware</Info>
      <System>
        <vssd:ElementName>Virtual Hardware Family</vssd:ElementName>
        <vssd:InstanceID>0</vssd:InstanceID>
        <vssd:VirtualSystemIdentifier>closlab-$suite</vssd:VirtualSystemIdentifier>
        <vssd:VirtualSystemType>virtualbox-2.2</vssd:VirtualSystemType>
      </System>
      <Item>
        <rasd:ElementName>2 processors</rasd:ElementName><rasd:InstanceID>1</rasd:InstanceID>
        <rasd:ResourceType>3</rasd:ResourceType><rasd:VirtualQuantity>2</rasd:VirtualQuantity>
      </Item>
      <Item>
        <rasd:AllocationUnits>MegaBytes</rasd:AllocationUnits>
        <rasd:ElementName>4096 MB</rasd:ElementName><rasd:InstanceID>2</rasd:InstanceID>
        <rasd:ResourceType>4</rasd:ResourceType><rasd:VirtualQuantity>4096</rasd:VirtualQuantity>
      </Item>
      <Item>
        <rasd:Address>0</rasd:Address>
        <rasd:ElementName>SATA</rasd:ElementName><rasd:InstanceID>3</rasd:InstanceID>
        <rasd:ResourceSubType>AHCI</rasd:ResourceSubType><rasd:ResourceType>20</rasd:ResourceType>
      </Item>
      <Item>
        <rasd:AddressOnParent>0</rasd:AddressOnParent>
        <rasd:ElementName>Disk</rasd:ElementName><rasd:InstanceID>4</rasd:InstanceID>
        <rasd:HostResource>/disk/disk1</rasd:HostResource><rasd:Parent>3</rasd:Parent>
        <rasd:ResourceType>17</rasd:ResourceType>
      </Item>
      <Item>
        <rasd:AutomaticAllocation>true</rasd:AutomaticAllocation>
        <rasd:Connection>NAT</rasd:Connection>
        <rasd:ElementName>Ethernet</rasd:ElementName><rasd:InstanceID>5</rasd:InstanceID>
        <rasd:ResourceSubType>E1000</rasd:ResourceSubType><rasd:ResourceType>10</rasd:ResourceType>
      </Item>
    </VirtualHardwareSection>
  </VirtualSystem>
</Envelope>
OVF
}

make_disk
install_debian
make_bootable
add_vagrant
[ -z "$with_lab" ] || install_lab
clean_up
for format in $formats; do
    say "packing for $format"
    mkdir "$work/$format"
    "pack_$format"
    box=$out/closlab-$suite-$format.box
    tar -C "$work/$format" -czf "$work/$format.box" .
    mv "$work/$format.box" "$box"
    say "made $box ($(du -h "$box" | cut -f1))"
done
say "to use it:  vagrant box add --name closlab/$suite $box && CLOSLAB_BOX=closlab/$suite vagrant up"
