//! Builds small disks for tests and the fuzzer: an ext file system of 64 KiB and a FAT12 volume of
//! the same size, with the files that the caller adds.

const std = @import("std");

pub const size = 64 << 10;
pub const Bytes = [size]u8;
/// Where the fields are that everything else depends on, for a fuzzer that damages them.
pub const meta_size = 16 << 10;

const block_size = 1024;
const inode_size = 256;
const inode_count = 32;
const inode_table = 5;
const first_inode = 11;
const root = 2;
const direct = 12;

pub const Kind = enum { ext4, ext2 };

pub const Ext = struct {
    bytes: *Bytes,
    kind: Kind,
    next_inode: u32 = first_inode,
    next_block: u32 = inode_table + inode_count * inode_size / block_size,

    /// With an empty root.
    pub fn init(bytes: *Bytes, kind: Kind) Ext {
        @memset(bytes, 0);
        var ext: Ext = .{ .bytes = bytes, .kind = kind };
        const super = bytes[1024..2048];
        put(u32, super, 0, inode_count);
        put(u32, super, 4, size / block_size);
        put(u32, super, 20, 1);
        put(u32, super, 32, 8192);
        put(u32, super, 40, inode_count);
        put(u16, super, 56, 0xef53);
        put(u16, super, 58, 1);
        put(u32, super, 76, 1);
        put(u16, super, 88, inode_size);
        put(u32, super, 96, if (kind == .ext4) 0x42 else 0x2);
        put(u32, bytes[2 * block_size ..], 8, inode_table);
        ext.makeDirectory(root, root);
        return ext;
    }

    pub fn directory(ext: *Ext, parent: u32, name: []const u8) u32 {
        const inode = ext.take();
        ext.makeDirectory(inode, parent);
        ext.link(parent, name, inode);
        return inode;
    }

    pub fn file(ext: *Ext, parent: u32, name: []const u8, content: []const u8) void {
        const inode = ext.take();
        const blocks: u32 = @intCast((content.len + block_size - 1) / block_size);
        const first = ext.next_block;
        // After twelve direct blocks ext2 needs a block of block numbers.
        const numbers: u32 = if (ext.kind == .ext2 and blocks > direct) 1 else 0;
        ext.next_block += blocks + numbers;
        @memcpy(ext.bytes[first * block_size ..][0..content.len], content);
        ext.fill(inode, 0x81a4, @intCast(content.len), first, blocks);
        ext.link(parent, name, inode);
    }

    pub fn symlink(ext: *Ext, parent: u32, name: []const u8, target: []const u8) void {
        const inode = ext.take();
        const raw = ext.at(inode);
        put(u16, raw, 0, 0xa1ff);
        put(u32, raw, 4, @intCast(target.len));
        @memcpy(raw[40..][0..target.len], target);
        ext.link(parent, name, inode);
    }

    fn take(ext: *Ext) u32 {
        defer ext.next_inode += 1;
        return ext.next_inode;
    }

    fn at(ext: *Ext, inode: u32) []u8 {
        return ext.bytes[inode_table * block_size + (inode - 1) * inode_size ..][0..inode_size];
    }

    fn fill(ext: *Ext, inode: u32, mode: u16, bytes: u32, first: u32, blocks: u32) void {
        const raw = ext.at(inode);
        put(u16, raw, 0, mode);
        put(u32, raw, 4, bytes);
        if (ext.kind == .ext2) {
            const numbers = first + blocks;
            if (blocks > direct) put(u32, raw, 40 + direct * 4, numbers);
            for (0..blocks) |index| {
                const number = first + @as(u32, @intCast(index));
                if (index < direct) put(u32, raw, 40 + index * 4, number) else //
                put(u32, ext.bytes[numbers * block_size ..], (index - direct) * 4, number);
            }
            return;
        }
        put(u32, raw, 32, 0x80000);
        put(u16, raw, 40, 0xf30a);
        put(u16, raw, 42, 1);
        put(u16, raw, 44, 4);
        put(u16, raw, 56, @intCast(blocks));
        put(u32, raw, 60, first);
    }

    fn makeDirectory(ext: *Ext, inode: u32, parent: u32) void {
        const block = ext.next_block;
        ext.next_block += 1;
        ext.fill(inode, 0x41ed, block_size, block, 1);
        // One entry that covers the block; the others are cut from it.
        const raw = ext.bytes[block * block_size ..][0..block_size];
        put(u16, raw, 4, block_size);
        ext.link(inode, ".", inode);
        ext.link(inode, "..", parent);
    }

    fn link(ext: *Ext, parent: u32, name: []const u8, inode: u32) void {
        const place: usize = if (ext.kind == .ext4) 60 else 40;
        const block = std.mem.readInt(u32, ext.at(parent)[place..][0..4], .little);
        const raw = ext.bytes[block * block_size ..][0..block_size];
        var entry: usize = 0;
        while (std.mem.readInt(u32, raw[entry..][0..4], .little) != 0)
            entry += std.mem.readInt(u16, raw[entry + 4 ..][0..2], .little);
        const left = std.mem.readInt(u16, raw[entry + 4 ..][0..2], .little);
        const taken: u16 = @intCast(std.mem.alignForward(usize, 8 + name.len, 4));
        put(u32, raw, entry, inode);
        put(u16, raw, entry + 4, taken);
        raw[entry + 6] = @intCast(name.len);
        @memcpy(raw[entry + 8 ..][0..name.len], name);
        put(u16, raw, entry + taken + 4, left - taken);
    }

    fn put(comptime T: type, into: []u8, place: usize, value: T) void {
        std.mem.writeInt(T, into[place..][0..@sizeOf(T)], value, .little);
    }
};

/// Enough for `wire.kernel_image` to accept it as a kernel.
pub const kernel = "\x1f\x8b" ++ @as([14_000]u8, @splat('k'));

/// A Debian, as far as boot files are concerned.
pub fn debian(bytes: *Bytes, kind: Kind) void {
    var ext: Ext = .init(bytes, kind);
    _ = ext.directory(root, "etc");
    const usr = ext.directory(root, "usr");
    _ = ext.directory(usr, "bin");
    ext.symlink(root, "bin", "usr/bin");
    const boot = ext.directory(root, "boot");
    ext.file(boot, "vmlinuz-6.1.0-9-amd64", "old");
    ext.file(boot, "vmlinuz-6.1.0-18-amd64", kernel);
    ext.file(boot, "initrd.img-6.1.0-18-amd64", "initrd");
    ext.symlink(root, "vmlinuz", "/boot/../boot/vmlinuz-6.1.0-18-amd64");
    const grub = ext.directory(boot, "grub");
    ext.file(grub, "grub.cfg",
        \\menuentry 'Debian' {
        \\ linux /vmlinuz root=UUID=6f1e ro quiet
        \\ initrd /boot/initrd.img-6.1.0-18-amd64
        \\}
    );
}

/// An EFI system partition with an entry of the Boot Loader Specification and its kernel; names are
/// short ones.
pub fn efiPartition(bytes: *Bytes) void {
    @memset(bytes, 0);
    const sector = 512;
    bytes[0] = 0xeb;
    std.mem.writeInt(u16, bytes[11..13], sector, .little);
    bytes[13] = 1;
    std.mem.writeInt(u16, bytes[14..16], 1, .little);
    bytes[16] = 1;
    std.mem.writeInt(u16, bytes[17..19], 16, .little);
    std.mem.writeInt(u16, bytes[19..21], size / sector, .little);
    std.mem.writeInt(u16, bytes[22..24], 1, .little);
    bytes[510..512].* = .{ 0x55, 0xaa };
    const entry = "version 6.1\nlinux /kernel\ninitrd /initrd\noptions root=LABEL=x quiet\n";
    const first_of_initrd = 2 + (kernel.len + sector - 1) / sector;
    const loader = first_of_initrd + 1;
    fatEntry(bytes[1024..], 0, "KERNEL     ", 2, kernel.len, false);
    fatEntry(bytes[1024..], 1, "INITRD     ", first_of_initrd, 6, false);
    fatEntry(bytes[1024..], 2, "LOADER     ", loader, 0, true);
    @memcpy(clusterAt(bytes, 2)[0..kernel.len], kernel);
    @memcpy(clusterAt(bytes, first_of_initrd)[0..6], "initrd");
    fatEntry(clusterAt(bytes, loader), 0, "ENTRIES    ", loader + 1, 0, true);
    fatLongEntry(clusterAt(bytes, loader + 1), 0, "a.conf", "A       CON");
    fatEntry(clusterAt(bytes, loader + 1), 1, "A       CON", loader + 2, entry.len, false);
    @memcpy(clusterAt(bytes, loader + 2)[0..entry.len], entry);
    for (2..loader + 3) |number| chain(
        bytes[512..1024],
        number,
        if (number + 1 < first_of_initrd) @intCast(number + 1) else 0xfff,
    );
}

/// One sector of boot record, one of table, one of the root; clusters begin after them.
fn clusterAt(bytes: *Bytes, number: usize) []u8 {
    return bytes[(3 + number - 2) * 512 ..];
}

fn fatEntry(
    directory: []u8,
    index: usize,
    name: *const [11]u8,
    cluster: u16,
    bytes: u32,
    is_directory: bool,
) void {
    const raw = directory[index * 32 ..][0..32];
    raw[0..11].* = name.*;
    raw[11] = if (is_directory) 0x10 else 0x20;
    std.mem.writeInt(u16, raw[26..28], cluster, .little);
    std.mem.writeInt(u32, raw[28..32], bytes, .little);
}

fn fatLongEntry(directory: []u8, index: usize, long: []const u8, short: *const [11]u8) void {
    const raw = directory[index * 32 ..][0..32];
    @memset(raw, 0xff);
    raw[0] = 0x41;
    raw[11] = 0x0f;
    raw[12] = 0;
    var sum: u8 = 0;
    for (short) |byte| sum = std.math.rotr(u8, sum, 1) +% byte;
    raw[13] = sum;
    raw[26..28].* = .{ 0, 0 };
    const places = [_]usize{ 1, 3, 5, 7, 9, 14, 16, 18 };
    for (long, 0..) |byte, at| std.mem.writeInt(u16, raw[places[at]..][0..2], byte, .little);
    std.mem.writeInt(u16, raw[places[long.len]..][0..2], 0, .little);
}

fn chain(table: []u8, number: usize, next: u16) void {
    const at = number * 3 / 2;
    const pair = std.mem.readInt(u16, table[at..][0..2], .little);
    const value = if (number % 2 == 0) (pair & 0xf000) | next else (pair & 0x000f) | next << 4;
    std.mem.writeInt(u16, table[at..][0..2], value, .little);
}
