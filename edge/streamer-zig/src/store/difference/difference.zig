//! Reads a difference as the source of an import over its base: the changed blocks in order, and
//! nothing where the base's stay. Frames are checked before a byte of them is used. Memory is
//! bounded by one frame.

const std = @import("std");
const block = @import("../block.zig");
const boot_bundle = @import("../boot_bundle.zig");
const Checkpoint = @import("../import/checkpoint.zig");
const Files = @import("../files/files.zig");
const format = @import("format.zig");
const frame_codec = @import("frame_codec.zig");
const image_source = @import("../import/image_source.zig");
const manifest_module = @import("../tree/manifest.zig");
const assert = std.debug.assert;
const Allocator = std.mem.Allocator;
const flate = std.compress.flate;

const BootFile = manifest_module.BootFile;
const FrameHead = format.FrameHead;
const ImageSource = image_source.ImageSource;
const Kind = format.Kind;
const ReadError = image_source.ReadError;

pub const Fault = format.Fault;
/// `WrongBootFile`: a kernel or an initramfs is not the one that the header names.
/// `BootFileMissing`: it is neither in the difference nor intact in the store.
pub const BootError = Fault || Files.Error || error{ WrongBootFile, BootFileMissing, Canceled };

pub const Difference = @This();

/// The file; positional, with a size.
file: ImageSource,
header: format.Header,
memory: *Memory,
/// The next frame's head.
at: u64 = format.header_size,
/// The frame of blocks in memory.
runs: []const format.Run = &.{},
/// The run that reading has come to, and the data of it and those behind it.
run: usize = 0,
data: []const u8 = "",
/// Block behind the last frame of blocks, and blocks with data before.
blocks_end: u64 = 0,
data_blocks: u64 = 0,
is_at_end: bool = false,
/// Why a read has failed, at `failed_at` of the file.
fault: ?Fault = null,
failed_at: u64 = 0,

const Memory = struct {
    head: [format.frame_head_size]u8,
    packed_bytes: [format.raw_size_max]u8,
    raw: [format.raw_size_max]u8,
    window: [flate.max_window_len]u8,
    runs: [format.runs_max]format.Run,
};

/// Returns whether a file that begins with these bytes is a difference.
pub fn isOne(head: []const u8) bool {
    return std.mem.startsWith(u8, head, &format.magic);
}

pub fn open(gpa: Allocator, file: ImageSource) (Fault || error{OutOfMemory})!Difference {
    assert(file.is_positional and file.size != null);
    var bytes: [format.header_size]u8 = undefined;
    var failed_at: u64 = 0;
    const count = file.read(&bytes, 0, &failed_at) catch return error.ReadFailed;
    if (!isOne(bytes[0..count])) return error.NotADifference;
    if (count < bytes.len) return error.Truncated;
    return .{
        .file = file,
        .header = try .decode(&bytes),
        .memory = try gpa.create(Memory),
    };
}

pub fn close(difference: *Difference, gpa: Allocator) void {
    gpa.destroy(difference.memory);
    difference.* = undefined;
}

/// The changed blocks. Must not move while it is in use.
pub fn source(difference: *Difference) ImageSource {
    return .{
        .context = difference,
        .vtable = &.{ .read = read, .nextData = nextData, .now = now, .dataEnd = dataEnd },
        .size = difference.header.disk_size,
        .is_positional = false,
    };
}

/// Describes the import of its version, except the path.
pub fn checkpoint(difference: *const Difference) Checkpoint {
    const header = &difference.header;
    return .{
        .version = header.version,
        .vdisk = header.vdisk,
        .parent = header.parent,
        .number = header.number,
        .kernel = header.kernel,
        .initrd = header.initrd,
        .command_line = header.command_line,
        .name = header.name,
        .note = header.note,
        .stamp = undefined,
        .source_size = undefined,
        .pad = false,
        .root_level = undefined,
        .difference = .{
            .base = header.base,
            .base_root = header.base_root,
            .root = header.root,
            .incarnation = header.incarnation,
            .counter = header.counter,
            .created_unix_ms = header.created_unix_ms,
        },
    };
}

/// Copies kernel and initramfs into the store, durable on return; those of the base are there.
/// Requires the store's lock. Comes before the blocks are read.
pub fn takeBootFiles(
    difference: *Difference,
    files: Files,
    is_canceled: *const std.atomic.Value(bool),
) BootError!void {
    assert(difference.at == format.header_size);
    for ([_]Kind{ .kernel, .initrd }) |kind| {
        const wanted = (if (kind == .kernel)
            difference.header.kernel
        else
            difference.header.initrd) orelse continue;
        const head = try difference.readHead();
        if (head.kind == kind)
            try difference.takeBootFile(kind, &wanted, files, is_canceled)
        else
            boot_bundle.check(files, &wanted) catch |err| return switch (err) {
                error.NotFound, error.OtherSize, error.Damaged => error.BootFileMissing,
                else => |other| other,
            };
    }
    const next = try difference.readHead();
    if (next.kind == .kernel or next.kind == .initrd) return difference.fail(error.Malformed);
}

fn takeBootFile(
    difference: *Difference,
    kind: Kind,
    wanted: *const BootFile,
    files: Files,
    is_canceled: *const std.atomic.Value(bool),
) BootError!void {
    var writer: boot_bundle.FileWriter = try .begin(files);
    defer writer.end();
    while (writer.size < wanted.size) {
        if (is_canceled.load(.monotonic)) return error.Canceled;
        const head = try difference.readHead();
        if (head.kind != kind or head.first != writer.size or head.end > wanted.size)
            return difference.fail(error.Malformed);
        const raw = try difference.load(&head);
        writer.append(raw) catch |err| return switch (err) {
            error.TooLarge => error.WrongBootFile,
            else => |other| other,
        };
        difference.at += format.frame_head_size + head.packed_size;
    }
    // Compared before the file gets the name of its hash.
    var sha = writer.sha;
    if (!std.mem.eql(u8, &sha.finalResult(), &wanted.hash)) return error.WrongBootFile;
    _ = writer.finish() catch |err| return switch (err) {
        error.Empty => error.WrongBootFile,
        else => |other| other,
    };
}

fn fail(difference: *Difference, fault: Fault) Fault {
    difference.fault = fault;
    difference.failed_at = difference.at;
    return fault;
}

/// Reads the head at `at`, whose frame is in the file.
fn readHead(difference: *Difference) Fault!FrameHead {
    const head_bytes = &difference.memory.head;
    try difference.fill(head_bytes, difference.at);
    const head = FrameHead.decode(head_bytes) catch {
        // A changed head is damaged; only an intact one can contradict itself.
        return difference.fail(error.Damaged);
    };
    const left = difference.file.size.? - difference.at - format.frame_head_size;
    if (head.packed_size > left) return difference.fail(error.Truncated);
    return head;
}

/// Reads and unpacks the frame that `readHead` has returned. Valid until the next call.
fn load(difference: *Difference, head: *const FrameHead) Fault![]const u8 {
    const memory = difference.memory;
    const packed_bytes = memory.packed_bytes[0..head.packed_size];
    try difference.fill(packed_bytes, difference.at + format.frame_head_size);
    if (!head.isIntact(&memory.head, packed_bytes)) return difference.fail(error.Damaged);
    switch (head.codec) {
        .stored => return packed_bytes,
        .deflate => {
            const raw = memory.raw[0..head.raw_size];
            if (!frame_codec.inflate(packed_bytes, raw, &memory.window))
                return difference.fail(error.Malformed);
            return raw;
        },
    }
}

fn fill(difference: *Difference, buffer: []u8, offset: u64) Fault!void {
    const size = difference.file.size.?;
    if (offset > size or buffer.len > size - offset) return difference.fail(error.Truncated);
    var failed_at: u64 = 0;
    const count = difference.file.read(buffer, offset, &failed_at) catch
        return difference.fail(error.ReadFailed);
    if (count < buffer.len) return difference.fail(error.Truncated);
}

fn of(context: *anyopaque) *Difference {
    return @ptrCast(@alignCast(context));
}

fn nextData(context: *anyopaque, offset: u64) ?u64 {
    const difference = of(context);
    assert(offset % block.block_size == 0);
    // `read` reports the fault, at a byte that it is called for.
    const found = difference.seek(offset / block.block_size) catch return offset;
    const first = found orelse return null;
    return @max(offset, first.first * block.block_size);
}

/// Finds the run with this block, or the next one; null at the end. Never goes back.
fn seek(difference: *Difference, index: u64) Fault!?format.Run {
    if (difference.fault) |fault| return fault;
    while (true) {
        while (difference.run < difference.runs.len) {
            const run = difference.runs[difference.run];
            if (run.end() > index) return run;
            if (!run.is_zeros)
                difference.data = difference.data[run.count * block.block_size ..];
            difference.run += 1;
        }
        if (difference.is_at_end or !try difference.nextFrame(index)) return null;
    }
}

/// Loads the next frame that has a block at or behind this one; returns false at the end.
fn nextFrame(difference: *Difference, index: u64) Fault!bool {
    while (true) {
        const head = try difference.readHead();
        switch (head.kind) {
            // Taken before.
            .kernel, .initrd => if (difference.blocks_end > 0)
                return difference.fail(error.Malformed),
            .end => {
                try difference.checkEnd(&head);
                return false;
            },
            .blocks => {
                const is_possible = head.first >= difference.blocks_end and
                    head.end <= difference.header.blockCount();
                if (!is_possible) return difference.fail(error.Malformed);
                difference.blocks_end = head.end;
                difference.data_blocks += head.dataBlocks();
            },
        }
        const is_wanted = head.kind == .blocks and head.end > index;
        if (is_wanted) try difference.loadRuns(&head);
        difference.at += format.frame_head_size + head.packed_size;
        if (!is_wanted) continue;
        // Nobody asks for what follows the last block of the disk.
        if (head.end == difference.header.blockCount()) {
            const last = try difference.readHead();
            if (last.kind != .end) return difference.fail(error.Malformed);
            try difference.checkEnd(&last);
        }
        return true;
    }
}

fn loadRuns(difference: *Difference, head: *const FrameHead) Fault!void {
    const raw = try difference.load(head);
    difference.runs = format.decodeRuns(head, raw, &difference.memory.runs) catch
        return difference.fail(error.Malformed);
    difference.run = 0;
    difference.data = raw[head.run_count * format.run_size ..];
}

fn checkEnd(difference: *Difference, head: *const FrameHead) Fault!void {
    _ = try difference.load(head);
    const is_last = difference.at + format.frame_head_size == difference.file.size.?;
    if (!is_last or head.first != difference.data_blocks) return difference.fail(error.Malformed);
    difference.is_at_end = true;
}

/// Where the run ends that `nextData` has found.
fn dataEnd(context: *anyopaque, offset: u64) u64 {
    const difference = of(context);
    // A read that reports a fault has a size.
    if (difference.fault != null) return offset + block.block_size;
    return difference.runs[difference.run].end() * block.block_size;
}

fn read(context: *anyopaque, buffer: []u8, offset: u64, failed_at: *u64) ReadError!usize {
    const difference = of(context);
    if (difference.fault != null) {
        failed_at.* = difference.failed_at;
        return error.ReadFailed;
    }
    const run = &difference.runs[difference.run];
    const skip = offset - run.first * block.block_size;
    assert(offset >= run.first * block.block_size);
    assert(skip + buffer.len <= @as(u64, run.count) * block.block_size);
    if (run.is_zeros)
        @memset(buffer, 0)
    else
        @memcpy(buffer, difference.data[@intCast(skip)..][0..buffer.len]);
    return buffer.len;
}

fn now(context: *anyopaque) ?ImageSource.Now {
    const difference = of(context);
    const found = difference.file.now() orelse return null;
    return .{ .stamp = found.stamp, .size = difference.header.disk_size };
}

test {
    _ = format;
    _ = frame_codec;
    _ = @import("pack.zig");
    _ = @import("packed_part.zig");
    _ = @import("difference_test.zig");
}
