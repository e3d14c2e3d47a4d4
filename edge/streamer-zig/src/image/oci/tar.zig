//! Reads tar archives as a stream: POSIX ustar and pax, GNU's long names, numbers and sparse files
//! (pax(1) of POSIX.1-2017; "Basic Tar Format" of GNU tar's manual). Archives are untrusted: each
//! header has a checksum, each size a limit.

const std = @import("std");
const access_list = @import("access_list.zig");
const fault_module = @import("fault.zig");
const FileTree = @import("../ext4/file_tree.zig");
const numbers = @import("numbers.zig");
const pax = @import("pax.zig");
const sparse = @import("sparse.zig");
const Allocator = std.mem.Allocator;
const Fault = fault_module.Fault;
const Reader = std.Io.Reader;
const Segment = FileTree.Segment;
const Xattr = FileTree.Xattr;

/// Extended headers and long names before one entry.
const prefixes_max = 8;
const prefix_size_max = 1 << 20;

pub const Kind = enum { file, hard_link, symlink, char_device, block_device, directory, fifo };

/// Texts are in the reader's arena until the next entry.
pub const Entry = struct {
    kind: Kind,
    path: []const u8,
    /// Of links.
    target: []const u8,
    mode: u16,
    uid: u32,
    gid: u32,
    mtime: i64,
    mtime_ns: u32,
    major: u32,
    minor: u32,
    /// Bytes of the file.
    size: u64,
    /// Bytes of it in the archive, from `offset` on.
    stored_size: u64,
    /// Bytes from the start of the archive.
    offset: u64,
    /// Null: the file is stored whole.
    segments: ?[]const Segment,
    xattrs: []const Xattr,
};

pub const TarReader = @This();

reader: *Reader,
/// Reset before each entry.
arena: *std.heap.ArenaAllocator,
/// Bytes from the start of the archive.
position: u64 = 0,
/// Bytes up to the next header.
rest: u64 = 0,

/// Returns null at the end of the archive.
pub fn next(tar: *TarReader) Fault!?Entry {
    _ = tar.arena.reset(.retain_capacity);
    try tar.skip(tar.rest);
    tar.rest = 0;
    var found: pax.Records = .{};
    var is_first = true;
    for (0..prefixes_max + 1) |_| {
        const header = try tar.readHeader(is_first) orelse return null;
        is_first = false;
        const size = try numbers.ofField(u64, header[124..136]);
        const kind = header[156];
        switch (kind) {
            'x' => try pax.parse(tar.arena.allocator(), try tar.readPrefix(size), &found),
            // Global records; archives of layers have none that matter (comments of git).
            'g' => _ = try tar.readPrefix(size),
            'L' => found.path = numbers.textOf(try tar.readPrefix(size)),
            'K' => found.link_path = numbers.textOf(try tar.readPrefix(size)),
            else => return try tar.entryOf(&header, &found),
        }
    }
    return error.RecordInvalid;
}

/// Reads the stored bytes of the last entry; 0 at their end. `left` counts them down from
/// `stored_size`.
pub fn read(tar: *TarReader, buffer: []u8, left: *u64) Fault!usize {
    const wanted = buffer[0..@intCast(@min(buffer.len, left.*))];
    tar.reader.readSliceAll(wanted) catch |err| return faultOf(err);
    tar.position += wanted.len;
    tar.rest -= wanted.len;
    left.* -= wanted.len;
    return wanted.len;
}

fn skip(tar: *TarReader, count: u64) Fault!void {
    tar.reader.discardAll64(count) catch |err| return faultOf(err);
    tar.position += count;
}

fn faultOf(err: Reader.Error) Fault {
    return if (err == error.EndOfStream) error.Truncated else error.ReadFailed;
}

/// Null at the end: a block of zeros, or the end of the file between two entries.
fn readHeader(tar: *TarReader, may_end: bool) Fault!?[numbers.record_size]u8 {
    var header: [numbers.record_size]u8 = undefined;
    const count = tar.reader.readSliceShort(&header) catch return error.ReadFailed;
    tar.position += count;
    if (count == 0 and may_end) return null;
    if (count < header.len) return error.Truncated;
    if (std.mem.allEqual(u8, &header, 0)) return if (may_end) null else error.Truncated;
    try checkSum(&header);
    return header;
}

/// Old programs have added up signed characters.
fn checkSum(header: *const [numbers.record_size]u8) Fault!void {
    const expected = try numbers.ofField(u32, header[148..156]);
    var unsigned: u32 = 0;
    var signed: i32 = 0;
    for (header, 0..) |byte, at| {
        const counted = if (at >= 148 and at < 156) ' ' else byte;
        unsigned += counted;
        signed += @as(i8, @bitCast(counted));
    }
    if (expected != unsigned and expected != @as(u32, @bitCast(signed)))
        return error.HeaderDamaged;
}

fn readPrefix(tar: *TarReader, size: u64) Fault![]const u8 {
    if (size > prefix_size_max) return error.RecordInvalid;
    const bytes = try tar.arena.allocator().alloc(u8, @intCast(size));
    tar.reader.readSliceAll(bytes) catch |err| return faultOf(err);
    tar.position += size;
    try tar.skip(paddingOf(size));
    return bytes;
}

fn paddingOf(size: u64) u64 {
    return (numbers.record_size - size % numbers.record_size) % numbers.record_size;
}

fn entryOf(
    tar: *TarReader,
    header: *const [numbers.record_size]u8,
    found: *const pax.Records,
) Fault!Entry {
    const arena = tar.arena.allocator();
    const in_archive = found.size orelse try numbers.ofField(u64, header[124..136]);
    const path = found.sparse_name orelse found.path orelse try pathOf(arena, header);
    const kind = try kindOf(header, path);
    // What is no file has no content, whatever it says of its size.
    const stored = if (kind == .file) in_archive else 0;
    const padded = std.math.add(u64, stored, paddingOf(stored)) catch return error.NumberInvalid;
    tar.rest = padded;
    var entry: Entry = .{
        .kind = kind,
        .path = path,
        .target = found.link_path orelse try arena.dupe(u8, numbers.textOf(header[157..257])),
        .mode = @intCast(try numbers.ofField(u32, header[100..108]) & 0o7777),
        .uid = found.uid orelse try numbers.ofField(u32, header[108..116]),
        .gid = found.gid orelse try numbers.ofField(u32, header[116..124]),
        .mtime = if (found.mtime) |time| time.seconds else try numbers.signedOf(header[136..148]),
        .mtime_ns = if (found.mtime) |time| time.nanoseconds else 0,
        .major = 0,
        .minor = 0,
        .size = stored,
        .stored_size = stored,
        .offset = tar.position,
        .segments = null,
        .xattrs = try withRights(arena, found),
    };
    if (kind == .char_device or kind == .block_device) {
        entry.major = try numbers.ofField(u32, header[329..337]);
        entry.minor = try numbers.ofField(u32, header[337..345]);
    }
    if (header[156] == 'S') try tar.readGnuMap(header, &entry);
    if (kind == .file) try tar.readPaxMap(found, &entry);
    return entry;
}

/// Attributes, and what is told as a text alone.
fn withRights(arena: Allocator, found: *const pax.Records) Fault![]const Xattr {
    var all = found.xattrs;
    const texts = [_]struct { access_list.Role, []const u8, ?[]const u8 }{
        .{ .access, "system.posix_acl_access", found.access_rights },
        .{ .default, "system.posix_acl_default", found.default_rights },
    };
    for (texts) |one| {
        const role, const name, const text = one;
        const is_told = for (all.items) |*xattr| {
            if (std.mem.eql(u8, xattr.name, name)) break true;
        } else false;
        if (is_told) continue;
        const value = try access_list.parse(arena, text orelse continue, role) orelse continue;
        try all.append(arena, .{ .name = name, .value = value });
    }
    return all.items;
}

fn kindOf(header: *const [numbers.record_size]u8, path: []const u8) Fault!Kind {
    return switch (header[156]) {
        // Before ustar, a name with a slash at its end was a directory.
        0, '0', '7' => if (std.mem.endsWith(u8, path, "/")) .directory else .file,
        '1' => .hard_link,
        '2' => .symlink,
        '3' => .char_device,
        '4' => .block_device,
        '5' => .directory,
        '6' => .fifo,
        'S' => .file,
        else => error.EntryUnknown,
    };
}

fn pathOf(arena: Allocator, header: *const [numbers.record_size]u8) Fault![]const u8 {
    const name = numbers.textOf(header[0..100]);
    // GNU has other fields there.
    const is_posix = std.mem.eql(u8, header[257..263], "ustar\x00");
    const prefix = if (is_posix) numbers.textOf(header[345..500]) else "";
    if (prefix.len == 0) return arena.dupe(u8, name);
    return std.mem.concat(arena, u8, &.{ prefix, "/", name });
}

/// The map of an old GNU sparse file: four parts in the header, 21 in each record behind it.
fn readGnuMap(tar: *TarReader, header: *const [numbers.record_size]u8, entry: *Entry) Fault!void {
    var map: sparse.Map = .{ .arena = tar.arena.allocator() };
    try map.addGnu(header[386..482]);
    var is_extended = header[482] != 0;
    entry.size = try numbers.ofField(u64, header[483..495]);
    while (is_extended) {
        var more: [numbers.record_size]u8 = undefined;
        tar.reader.readSliceAll(&more) catch |err| return faultOf(err);
        tar.position += more.len;
        try map.addGnu(more[0..504]);
        is_extended = more[504] != 0;
    }
    entry.offset = tar.position;
    entry.segments = try map.finish(entry.size, entry.stored_size);
}

/// The maps of pax: in records (0.0, 0.1), or before the content (1.0).
fn readPaxMap(tar: *TarReader, found: *const pax.Records, entry: *Entry) Fault!void {
    const size = found.sparse_size orelse return;
    var map: sparse.Map = .{ .arena = tar.arena.allocator() };
    if (found.sparse_major == 1) {
        var text: sparse.TextMap = .{ .map = &map };
        while (!text.is_done) {
            if (entry.stored_size < numbers.record_size) return error.SparseMapInvalid;
            var part: [numbers.record_size]u8 = undefined;
            var left: u64 = numbers.record_size;
            _ = try tar.read(&part, &left);
            entry.stored_size -= numbers.record_size;
            try text.add(&part);
        }
    } else for (found.sparse_map.items) |segment| try map.add(segment);
    entry.size = size;
    entry.offset = tar.position;
    entry.segments = try map.finish(size, entry.stored_size);
}
