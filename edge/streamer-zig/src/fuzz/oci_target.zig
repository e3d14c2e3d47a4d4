//! Fuzzes archives of container images, which are untrusted: lists, layers plain and packed,
//! entries of tar. Whatever an archive says, its conversion ends, takes bounded memory and writes
//! within its disk; each file of a disk that was made reads as the layers have it.

const std = @import("std");
const image = @import("image");
const store = @import("store");
const fuzz_case = @import("case.zig");
const Case = fuzz_case.Case;
const Violation = fuzz_case.Violation;
const expect = fuzz_case.expect;
const oci = image.oci;
const test_archive = oci.test_archive;
const BlockSource = store.BlockSource;
const FileTree = oci.FileTree;
const TarBuilder = test_archive.TarBuilder;

const layers_max = 3;
const disk_size = 64 << 20;
const page_size = 4096;
const not_canceled: std.atomic.Value(bool) = .init(false);

/// The window of zstd, two buffers of a layer's stream, and the trees of small images.
var memory: [32 << 20]u8 = undefined;
var reader_memory: [4 << 20]u8 = undefined;
var conversion: oci.Conversion = undefined;
var disk: image.Disk = undefined;
var pages: Pages = .{};
var compressor: std.compress.flate.Compress = undefined;
var window: [std.compress.flate.max_window_len]u8 = undefined;
var archive_bytes: [2 * test_archive.size_max]u8 = undefined;
var plain: [layers_max][64 << 10]u8 = undefined;
var packed_layers: [layers_max][80 << 10]u8 = undefined;
var expected: [64 << 10]u8 = undefined;

/// What zstd made, and the layer that it made it of.
const zstd_layer = test_archive.zstd_layer;
var zstd_plain: [64 << 10]u8 = undefined;
var zstd_plain_size: usize = 0;

/// What is written of the disk, in pages that begin as zeros.
const Pages = struct {
    /// Metadata of the smallest file system takes some hundred, and the layers a few.
    const count_max = 4096;

    numbers: [disk_size / page_size]u16 = @splat(0),
    bytes: [count_max][page_size]u8 = undefined,
    used: [count_max]u16 = undefined,
    count: u16 = 0,
    is_full: bool = false,

    fn clear(all: *Pages) void {
        for (all.used[0..all.count]) |place| all.numbers[place] = 0;
        all.count = 0;
        all.is_full = false;
    }

    fn write(context: *anyopaque, bytes: []const u8, offset: u64) oci.Sink.Error!void {
        const all: *Pages = @ptrCast(@alignCast(context));
        if (offset > disk_size or bytes.len > disk_size - offset) {
            all.is_full = true;
            return error.WriteFailed;
        }
        var done: usize = 0;
        while (done < bytes.len) {
            const at: usize = @intCast(offset + done);
            const page = all.pageOf(at / page_size) orelse return error.WriteFailed;
            const part = @min(bytes.len - done, page_size - at % page_size);
            @memcpy(page[at % page_size ..][0..part], bytes[done..][0..part]);
            done += part;
        }
    }

    fn pageOf(all: *Pages, number: usize) ?*[page_size]u8 {
        if (all.numbers[number] == 0) {
            if (all.count == count_max) {
                all.is_full = true;
                return null;
            }
            all.used[all.count] = @intCast(number);
            @memset(&all.bytes[all.count], 0);
            all.count += 1;
            all.numbers[number] = all.count;
        }
        return &all.bytes[all.numbers[number] - 1];
    }

    fn read(context: *anyopaque, buffer: []u8, offset: u64) BlockSource.ReadError!void {
        const all: *const Pages = @ptrCast(@alignCast(context));
        for (buffer, 0..) |*byte, index| {
            const at: usize = @intCast(offset + index);
            const number = all.numbers[at / page_size];
            byte.* = if (number == 0) 0 else all.bytes[number - 1][at % page_size];
        }
    }
};

/// Layers of random entries, whose lists and digests are most often right.
pub fn archives(case: *Case) Violation!bool {
    const prng = &case.prng;
    var layers: [layers_max][]const u8 = undefined;
    var parts: [layers_max][]const u8 = undefined;
    const count: usize = @intCast(prng.between(1, layers_max));
    for (layers[0..count], parts[0..count], 0..) |*layer, *part, index| {
        layer.* = makeLayer(case, index);
        part.* = pack(case, layer, index);
    }
    var bytes: []u8 = if (prng.chance(1, 2))
        test_archive.dockerArchiveOf(&archive_bytes, layers[0..count], parts[0..count])
    else
        test_archive.layoutArchive(&archive_bytes, layers[0..count], parts[0..count]);
    if (prng.chance(1, 4)) bytes = damageArchive(case, bytes);
    return convert(layers[0..count], bytes);
}

/// Headers of the outer archive and its lists, at any place of it.
fn damageArchive(case: *Case, bytes: []u8) []u8 {
    const prng = &case.prng;
    if (prng.chance(1, 8)) return bytes[0..@intCast(prng.between(0, bytes.len))];
    const is_mutated = prng.chance(1, 2);
    for (0..@intCast(prng.between(1, 6))) |_| {
        const record = 512 * @as(usize, @intCast(prng.below(bytes.len / 512)));
        damage(case, bytes[record..][0..512]);
        if (is_mutated and std.mem.eql(u8, bytes[record + 257 ..][0..5], "ustar"))
            TarBuilder.seal(bytes[record..][0..512]);
    }
    return bytes;
}

fn damage(case: *Case, bytes: []u8) void {
    const at: usize = @intCast(case.prng.below(bytes.len));
    bytes[at] = switch (case.prng.below(4)) {
        0 => bytes[at] ^ @as(u8, 1) << @intCast(case.prng.below(8)),
        1 => case.prng.pick(u8, &.{ 0, ' ', '0', '7', '/', '.', 0x7f, 0x80, 0xff }),
        2 => '0' + @as(u8, @intCast(case.prng.below(8))),
        else => case.byte(),
    };
}

const long_name: [240]u8 = @splat('n');
const names = [_][]const u8{
    "a",    "b",     "a/b",   "a/b/c",     "usr/sbin/x",              "sbin/init",      "etc/passwd",
    "link", "link/", "./",    "../a",      "/etc/x",                  "a/../b",         "boot/vmlinuz-6.1",
    ".wh.", "a/..",  ".wh.a", "a/.wh.b",   ".wh..wh..opq",            "a/.wh..wh..opq", ".wh..wh.plnk",
    "",     "/",     "sbin",  "link/link", "lib/modules/6.1/vmlinuz",
};
const keys = [_][]const u8{
    "path",                                 "linkpath",            "size",
    "uid",                                  "gid",                 "mtime",
    "GNU.sparse.name",                      "GNU.sparse.realsize", "GNU.sparse.size",
    "GNU.sparse.major",                     "GNU.sparse.map",      "GNU.sparse.offset",
    "GNU.sparse.numbytes",                  "SCHILY.xattr.user.a", "SCHILY.xattr.security.capability",
    "SCHILY.xattr.system.posix_acl_access", "SCHILY.acl.access",   "SCHILY.acl.default",
    "comment",
};
const rights = [_][]const u8{
    "\x02\x00\x00\x00\x01\x00\x07\x00\xff\xff\xff\xff\x02\x00\x05\x00\xe8\x03\x00\x00",
    "user::rwx,user:1000:r-x,group::r--,mask::rwx,other::---",
    "u::7",
};

fn makeLayer(case: *Case, index: usize) []const u8 {
    const prng = &case.prng;
    var tar: TarBuilder = .{ .bytes = &plain[index] };
    if (index == 0 and prng.chance(15, 16)) tar.add("sbin/init", .{ .content = "an init" });
    for (0..@intCast(prng.below(8))) |_| addEntry(case, &tar);
    if (prng.chance(1, 8)) for (0..@intCast(prng.between(1, 4))) |_| {
        if (tar.size == 0) break;
        const record = 512 * @as(usize, @intCast(prng.below(tar.size / 512)));
        damage(case, plain[index][record..][0..512]);
        if (prng.chance(3, 4)) TarBuilder.seal(plain[index][record..][0..512]);
    };
    const whole = tar.finish();
    return if (prng.chance(31, 32)) whole else whole[0..@intCast(prng.between(0, whole.len))];
}

fn addEntry(case: *Case, tar: *TarBuilder) void {
    const prng = &case.prng;
    var content: [9000]u8 = undefined;
    const size: usize = @intCast(if (prng.chance(1, 4)) prng.below(9000) else prng.below(64));
    @memset(content[0..size], case.byte());
    if (prng.chance(1, 8)) addRecords(case, tar);
    if (prng.chance(1, 16)) tar.add("././@LongLink", .{
        .kind = prng.pick(u8, "LK"),
        .content = long_name[0..@intCast(prng.between(1, long_name.len))],
    });
    if (prng.chance(1, 12)) return addSparse(case, tar);
    const kind = prng.pick(u8, "0000000555512112346gZ7");
    const options: TarBuilder.Options = .{
        .kind = if (kind == 'Z' and prng.chance(7, 8)) '0' else kind,
        .mode = @truncate(prng.nextU32() & 0o7777),
        .target = if (prng.chance(3, 4)) "sbin/init" else prng.pick([]const u8, &names),
        .content = if (kind == '0' or prng.chance(1, 16)) content[0..size] else "",
        .uid = @truncate(prng.below(1 << 20)),
        .time = prng.below(1 << 33),
        .major = @truncate(prng.below(if (prng.chance(7, 8)) 300 else 5000)),
        .minor = @truncate(prng.below(1 << 20)),
        .size = if (prng.chance(1, 64)) prng.below(1 << 33) else null,
    };
    // The first names are harmless.
    tar.add(prng.pick([]const u8, if (prng.chance(7, 8)) names[0..8] else &names), options);
}

fn addRecords(case: *Case, tar: *TarBuilder) void {
    const prng = &case.prng;
    var records: [3][2][]const u8 = undefined;
    var texts: [3][32]u8 = undefined;
    const count: usize = @intCast(prng.between(1, records.len));
    for (records[0..count], texts[0..count]) |*record, *text| {
        const key = prng.pick([]const u8, &keys);
        const is_name = std.mem.endsWith(u8, key, "path") or std.mem.endsWith(u8, key, "name");
        const number = prng.nextU64() >> @intCast(prng.between(0, 63));
        record.* = .{ key, if (is_name)
            prng.pick([]const u8, &names)
        else if (std.mem.startsWith(u8, key, "SCHILY"))
            prng.pick([]const u8, &rights)
        else if (prng.chance(1, 8))
            case.text(text, 1)
        else
            std.mem.print(text, "{d}", .{number}) catch unreachable };
    }
    tar.pax(records[0..count]);
}

/// A sparse file of two parts, in the map 1.0 or 0.1.
fn addSparse(case: *Case, tar: *TarBuilder) void {
    const prng = &case.prng;
    const first, const second = .{ 1 + prng.below(40), 1 + prng.below(40) };
    const gap = prng.below(20_000);
    var texts: [4][64]u8 = undefined;
    const total = first + second + gap + prng.below(9000);
    const real = std.mem.print(&texts[0], "{d}", .{total}) catch unreachable;
    const name = prng.pick([]const u8, names[0..6]);
    var content: [512 + 128]u8 = @splat(0);
    @memset(content[512..], case.byte());
    if (prng.chance(1, 2)) {
        _ = std.mem.print(&content, "2\n0\n{d}\n{d}\n{d}\n", .{ first, first + gap, second }) catch
            unreachable;
        tar.pax(&.{
            .{ "GNU.sparse.major", "1" },     .{ "GNU.sparse.name", name },
            .{ "GNU.sparse.realsize", real },
        });
        tar.add("sparse", .{ .content = content[0..@intCast(512 + first + second)] });
    } else {
        const map = std.mem.print(&texts[1], "0,{d},{d},{d}", .{ first, first + gap, second }) catch
            unreachable;
        tar.pax(&.{
            .{ "GNU.sparse.size", real }, .{ "GNU.sparse.name", name }, .{ "GNU.sparse.map", map },
        });
        tar.add("sparse", .{ .content = content[512..][0..@intCast(first + second)] });
    }
}

/// As it is, deflated, or in raw blocks of zstd; sometimes a damaged one, or one that zstd made.
fn pack(case: *Case, layer: *[]const u8, index: usize) []const u8 {
    const prng = &case.prng;
    const into = &packed_layers[index];
    const packed_bytes: []u8 = switch (prng.below(8)) {
        0, 1 => deflate(layer.*, into),
        2 => test_archive.zstdFrame(layer.*, into),
        3 => blk: {
            @memcpy(into[0..zstd_layer.len], zstd_layer);
            layer.* = zstdPlain();
            break :blk into[0..zstd_layer.len];
        },
        else => return layer.*,
    };
    if (prng.chance(1, 4)) for (0..@intCast(prng.between(1, 4))) |_| damage(case, packed_bytes);
    return packed_bytes;
}

fn zstdPlain() []const u8 {
    if (zstd_plain_size == 0) {
        var in: std.Io.Reader = .fixed(zstd_layer);
        var unpack: std.compress.zstd.Decompress =
            .init(&in, &memory, .{ .window_len = std.compress.zstd.default_window_len });
        zstd_plain_size = unpack.reader.readSliceShort(&zstd_plain) catch unreachable;
    }
    return zstd_plain[0..zstd_plain_size];
}

fn deflate(bytes: []const u8, into: []u8) []u8 {
    var out: std.Io.Writer = .fixed(into);
    compressor = std.compress.flate.Compress.init(&out, &window, .gzip, .fastest) catch unreachable;
    compressor.writer.writeAll(bytes) catch unreachable;
    compressor.finish() catch unreachable;
    return out.buffered();
}

fn convert(layers: []const []const u8, bytes: []const u8) Violation!bool {
    var fixed: std.heap.FixedBufferAllocator = .init(&memory);
    var file: image.container.MemoryFile = .{ .bytes = bytes };
    const archive = oci.Archive.openFile(fixed.allocator(), file.source()) catch |fault|
        return refuse(fault);
    conversion.prepare(fixed.allocator(), &archive, .{
        .size = disk_size,
        .needs = .{ .kernel = false },
        .is_canceled = &not_canceled,
    }) catch |fault| return refuse(fault);
    pages.clear();
    conversion.write(.{ .context = &pages, .writeFn = Pages.write }) catch |fault| {
        try expect(!pages.is_full, "what is written lies within the disk");
        try expect(fault == error.ReadFailed, "a plan that is made can be written");
        return refuse(fault);
    };
    var source: BlockSource =
        .{ .context = &pages, .vtable = &.{ .read = Pages.read }, .size = disk_size };
    var reading: std.heap.FixedBufferAllocator = .init(&reader_memory);
    disk.open(reading.allocator(), &source) catch
        return fuzz_case.violated("the disk that was made can be opened");
    var walk: Walk = .{ .layers = layers, .arena = .init(reading.allocator()) };
    try walk.directory(FileTree.root, 0, 0);
    return true;
}

fn refuse(fault: oci.Fault) Violation!bool {
    try expect(fault != error.OutOfMemory, "an archive takes bounded memory");
    try expect(oci.fault.sentence(fault).len > 0, "a fault has a sentence");
    return false;
}

/// Compares the files of the tree with those that the reader of disks finds.
const Walk = struct {
    layers: []const []const u8,
    arena: std.heap.ArenaAllocator,
    path: [1024]u8 = undefined,
    files_left: u32 = 24,

    fn directory(walk: *Walk, index: u32, size: usize, depth: u32) Violation!void {
        if (depth == 16) return;
        const inode = conversion.tree.at(index);
        for (inode.children.keys(), inode.children.values()) |name, child| {
            if (walk.files_left == 0 or size + 1 + name.len > walk.path.len) return;
            walk.path[size] = '/';
            @memcpy(walk.path[size + 1 ..][0..name.len], name);
            const end = size + 1 + name.len;
            const found = conversion.tree.at(child.inode);
            switch (found.kind) {
                .directory => try walk.directory(child.inode, end, depth + 1),
                .file => try walk.check(found, walk.path[0..end]),
                else => {},
            }
        }
    }

    fn check(walk: *Walk, inode: *const FileTree.Inode, path: []const u8) Violation!void {
        walk.files_left -= 1;
        if (inode.size > expected.len) return;
        const want = expected[0..@intCast(inode.size)];
        @memset(want, 0);
        const layer = walk.layers[inode.layer];
        var at: usize = @intCast(inode.offset);
        const whole = [_]FileTree.Segment{.{ .offset = 0, .size = inode.size }};
        for (inode.segments orelse &whole) |segment| {
            const size: usize = @intCast(segment.size);
            @memcpy(want[@intCast(segment.offset)..][0..size], layer[at..][0..size]);
            at += size;
        }
        _ = walk.arena.reset(.retain_capacity);
        const got = disk.readTextAt(walk.arena.allocator(), 0, path, expected.len) catch
            return fuzz_case.violated("a file of the disk can be read");
        try expect(got != null, "a file of the tree is on the disk");
        try expect(std.mem.eql(u8, want, got.?), "a file has the bytes of its layer");
    }
};
