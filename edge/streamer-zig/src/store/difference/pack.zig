//! Packs a version: writes the difference between it and its base, or all of it, in one pass from
//! the start to the end and with memory of fixed size. The trees tell which blocks differ, so that
//! only those are read. Every block is checked before it is written, as in an export.

const std = @import("std");
const base = @import("base");
const block = @import("../block.zig");
const boot_bundle = @import("../boot_bundle.zig");
const compare = @import("../compare.zig");
const Files = @import("../files/files.zig");
const format = @import("format.zig");
const frame_codec = @import("frame_codec.zig");
const manifest_module = @import("../tree/manifest.zig");
const PackedPart = @import("packed_part.zig");
const store_dir = @import("../files/store_dir.zig");
const VersionReader = @import("../version_reader.zig");
const TargetError = @import("../export.zig").TargetError;
const assert = std.debug.assert;
const Sha256 = base.Sha256;

const BootFile = manifest_module.BootFile;
const FrameHead = format.FrameHead;
const Kind = format.Kind;
const Manifest = manifest_module.Manifest;
const Run = format.Run;

/// `Damaged` and `ReadFailed` are about the version, at `Pack.failed_at`; `Lost` and
/// `BootFileDamaged` about its kernel or initramfs. `OtherSize`: than the base.
pub const Error = VersionReader.Error || TargetError ||
    error{ Canceled, OutOfMemory, BootFileDamaged, OtherSize };

/// Takes the file's bytes in order.
pub const Sink = struct {
    context: *anyopaque,
    write: *const fn (*anyopaque, bytes: []const u8) TargetError!void,
};

pub const Progress = struct {
    /// Byte of the disk.
    position: u64 = 0,
    size: u64,
    /// Bytes of blocks with data that the difference has.
    changed_bytes: u64 = 0,
};

pub const Observer = struct {
    context: *anyopaque,
    progress: *const fn (*anyopaque, *const Progress) void,
};

pub const Pack = @This();

store: *store_dir.Store,
/// Both are open, so that nobody deletes them.
version: *store_dir.OpenVersion,
before: ?*store_dir.OpenVersion,
sink: Sink,
is_canceled: *const std.atomic.Value(bool),
watch: Observer,
done: Progress,
/// Already in the file, before everything that the sink gets; null: nothing.
part: ?PackedPart = null,
packer: frame_codec.Packer = undefined,
/// The frame that is being filled: its runs, their data, and the place to put both together.
runs: base.BoundedArray(Run, format.runs_max) = .empty,
data: []u8 = &.{},
data_size: usize = 0,
raw: []u8 = &.{},
problem: ?Error = null,
/// Bytes from the start of the disk, or of the kernel or initramfs.
failed_at: u64 = 0,

pub fn run(on: *Pack, gpa: std.mem.Allocator) Error!void {
    const made = &on.version.manifest;
    if (on.before) |known| if (known.manifest.disk_size != made.disk_size) return error.OtherSize;
    on.packer = try .init(gpa);
    defer on.packer.deinit(gpa);
    on.data = try gpa.alloc(u8, format.raw_size_max);
    defer gpa.free(on.data);
    on.raw = try gpa.alloc(u8, format.raw_size_max);
    defer gpa.free(on.raw);
    const before = if (on.before) |known| &known.manifest else null;
    if (on.part) |*part| {
        on.done.position = @min(on.done.size, part.blocks_end * block.block_size);
        on.done.changed_bytes = part.data_blocks * block.block_size;
    } else {
        try on.write(&format.Header.of(made, before).encode());
        if (made.kernel) |*file| if (!isOf(before, file)) try on.addBootFile(.kernel, file);
        if (made.initrd) |*file| if (!isOf(before, file)) try on.addBootFile(.initrd, file);
    }
    const level = made.rootLevel();
    var comparison: compare.Comparison(*Pack) =
        .{ .nodes = &on.store.nodes, .context = on, .report = addRange };
    try comparison.run(
        .{ .root = if (before) |known| known.root else .zeros, .level = level },
        .{ .root = made.root, .level = level },
    );
    if (on.problem) |problem| return problem;
    try on.endFrame();
    try on.writeFrame(.{
        .kind = .end,
        .codec = .stored,
        .raw_size = 0,
        .packed_size = 0,
        .run_count = 0,
        .first = on.done.changed_bytes / block.block_size,
        .end = 0,
    }, "");
    on.done.position = on.done.size;
    on.watch.progress(on.watch.context, &on.done);
}

/// The taker has the boot files of the base.
fn isOf(before: ?*const Manifest, file: *const BootFile) bool {
    const known = before orelse return false;
    for ([_]?BootFile{ known.kernel, known.initrd }) |other| if (other) |given| {
        if (given.size == file.size and std.mem.eql(u8, &given.hash, &file.hash)) return true;
    };
    return false;
}

fn addBootFile(on: *Pack, kind: Kind, file: *const BootFile) Error!void {
    const files = on.store.files;
    var name: Files.Name = undefined;
    const handle = files.open(boot_bundle.nameOf(file, &name), .read) catch |err|
        return if (err == error.NotFound) error.Lost else error.ReadFailed;
    defer files.close(handle);
    var sha: Sha256 = .init(.{});
    var at: u64 = 0;
    while (at < file.size) {
        if (on.is_canceled.load(.monotonic)) return error.Canceled;
        on.failed_at = at;
        const part = on.raw[0..@intCast(@min(format.raw_size_max, file.size - at))];
        if (!(files.readWhole(handle, part, at) catch return error.ReadFailed))
            return error.BootFileDamaged;
        sha.update(part);
        try on.packFrame(.{ .kind = kind, .first = at, .end = at + part.len }, part);
        at += part.len;
    }
    if (!std.mem.eql(u8, &sha.finalResult(), &file.hash)) return error.BootFileDamaged;
}

fn addRange(on: *Pack, range: compare.Range) void {
    if (on.problem == null) on.addBlocks(range) catch |err| {
        on.problem = err;
    };
}

fn addBlocks(on: *Pack, range: compare.Range) Error!void {
    const reader = &on.version.reader;
    const end = range.first + range.count;
    var at = range.first;
    // Frames end with the range that they were filled from, so that what follows is as without an
    // interruption.
    if (on.part) |*part| at = @max(at, part.blocks_end);
    while (at < end) {
        on.failed_at = at * block.block_size;
        const found = try reader.nextBlock(at, end) orelse end;
        try on.addZeros(at, found);
        at = found;
        while (at < end) : (at += 1) if ((try reader.entryOf(at)).isZeros()) break;
        try on.addData(found, at);
    }
}

fn addZeros(on: *Pack, first: u64, end: u64) Error!void {
    var at = first;
    while (at < end) {
        const count: u32 = @intCast(@min(end - at, Run.count_max));
        if (on.runs.count == format.runs_max or on.capacity() == 0) try on.endFrame();
        on.runs.appendAssumeCapacity(.{ .first = at, .count = count, .is_zeros = true });
        at += count;
    }
}

/// Blocks that fit into the frame beside one more run.
fn capacity(on: *const Pack) usize {
    const runs_size = (@as(usize, on.runs.count) + 1) * format.run_size;
    return (format.raw_size_max -| (runs_size + on.data_size)) / block.block_size;
}

fn addData(on: *Pack, first: u64, end: u64) Error!void {
    var at = first;
    while (at < end) {
        if (on.is_canceled.load(.monotonic)) return error.Canceled;
        if (on.runs.count == format.runs_max or on.capacity() == 0) try on.endFrame();
        const count: u32 = @intCast(@min(end - at, on.capacity()));
        const bytes = on.data[on.data_size..][0 .. count * block.block_size];
        try on.read(bytes, at * block.block_size);
        on.runs.appendAssumeCapacity(.{ .first = at, .count = count, .is_zeros = false });
        on.data_size += bytes.len;
        on.done.changed_bytes += bytes.len;
        at += count;
        on.done.position = @min(on.done.size, at * block.block_size);
        on.watch.progress(on.watch.context, &on.done);
    }
}

/// The last block of a disk is filled with zeros.
fn read(on: *Pack, bytes: []u8, offset: u64) Error!void {
    const size: usize = @intCast(@min(bytes.len, on.done.size - offset));
    @memset(bytes[size..], 0);
    const disk = on.version.reader.source();
    disk.read(bytes[0..size], offset) catch |problem| {
        var from: usize = 0;
        while (from < size) : (from += block.block_size) {
            on.failed_at = offset + from;
            const part = bytes[from..@min(size, from + block.block_size)];
            try disk.read(part, offset + from);
        }
        return problem;
    };
}

fn endFrame(on: *Pack) Error!void {
    const runs = on.runs.constSlice();
    if (runs.len == 0) return;
    const runs_size = runs.len * format.run_size;
    for (runs, 0..) |*each, index|
        on.raw[index * format.run_size ..][0..format.run_size].* = each.encode();
    @memcpy(on.raw[runs_size..][0..on.data_size], on.data[0..on.data_size]);
    try on.packFrame(.{
        .kind = .blocks,
        .run_count = @intCast(runs.len),
        .first = runs[0].first,
        .end = runs[runs.len - 1].end(),
    }, on.raw[0 .. runs_size + on.data_size]);
    on.runs = .empty;
    on.data_size = 0;
}

const Contents = struct { kind: Kind, run_count: u32 = 0, first: u64, end: u64 };

fn packFrame(on: *Pack, contents: Contents, raw: []const u8) Error!void {
    const deflated = on.packer.deflate(raw);
    const packed_bytes = deflated orelse raw;
    return on.writeFrame(.{
        .kind = contents.kind,
        .codec = if (deflated == null) .stored else .deflate,
        .raw_size = @intCast(raw.len),
        .packed_size = @intCast(packed_bytes.len),
        .run_count = contents.run_count,
        .first = contents.first,
        .end = contents.end,
    }, packed_bytes);
}

fn writeFrame(on: *Pack, head: FrameHead, packed_bytes: []const u8) Error!void {
    try on.write(&head.encode(packed_bytes));
    try on.write(packed_bytes);
}

fn write(on: *Pack, bytes: []const u8) Error!void {
    return on.sink.write(on.sink.context, bytes);
}
