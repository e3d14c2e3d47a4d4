//! The log of a VHDX file that was not closed: updates of its tables that were durable in the log
//! and perhaps not yet in their places. They are applied to what is read; the file is not written.
//! Specification: [MS-VHDX] 2.3.

const std = @import("std");
const Crc32c = @import("../crc32c.zig").Crc32c;
const Fault = @import("fault.zig").Fault;
const File = @import("file.zig");
const Allocator = std.mem.Allocator;
const int = @import("vhdx_numbers.zig").int;

const sector_size = 4096;
const mib = 1 << 20;
/// Windows and QEMU make logs of 1 MiB.
const log_size_max = 64 << 20;
const zeros_max = 1024;
/// Each entry is checked a few times.
const checks_max = 16;
const entry_head_size = 64;
const descriptor_size = 32;

pub const Replay = @This();

/// Pages that the log has, by their place in the file; the later update of a page counts.
pages: std.AutoHashMapUnmanaged(u64, Page),
zeros: []ZeroRange,
/// All updates are in this range of the file.
first: u64,
end: u64,
/// What the size of the file must be, once everything is written.
file_size: u64,

const Page = struct {
    order: u32,
    /// Where in the log its 4084 bytes are; the rest is in its descriptor.
    data_at: u64,
    leading: [8]u8,
    trailing: [4]u8,
};
const ZeroRange = struct { order: u32, first: u64, end: u64 };

pub const empty: Replay = .{
    .pages = .empty,
    .zeros = &.{},
    .first = std.math.maxInt(u64),
    .end = 0,
    .file_size = 0,
};

/// Where the log is; its identifier tells its entries from those of earlier sessions.
pub const LogRegion = struct {
    id: [16]u8,
    at: u64,
    size: u64,
    /// Bytes of entries that may still be checked: entries that overlap could be any number.
    bytes_left: u64 = 0,
};

/// An entry that was checked.
const Entry = struct { at: u64, size: u64, tail: u64, sequence: u64, descriptors: u32 };

/// The entries from a tail to a head.
const Sequence = struct { first: u64, count: u32, head: Entry };

pub fn load(gpa: Allocator, file: *const File, region: LogRegion) Fault!Replay {
    var log_region = region;
    const log = &log_region;
    if (log.size == 0 or log.size % mib != 0 or log.at % mib != 0 or log.at < mib)
        return error.LogDamaged;
    if (log.size > log_size_max) return error.TooManyPatches;
    if (!file.has(log.at, log.size)) return error.Truncated;
    log.bytes_left = log.size * checks_max;
    const sequence = try findActive(file, log) orelse return error.LogDamaged;
    var replay: Replay = empty;
    errdefer replay.deinit(gpa);
    var zeros: std.ArrayList(ZeroRange) = .empty;
    errdefer zeros.deinit(gpa);
    var at = sequence.first;
    var order: u32 = 0;
    for (0..sequence.count) |_| {
        const entry = try readEntry(file, log, at) orelse return error.LogDamaged;
        try replay.take(gpa, file, log, &entry, &order, &zeros);
        at = wrapped(log, at + entry.size);
    }
    var sizes: [16]u8 = undefined;
    try readLog(file, log, &sizes, sequence.head.at + 48);
    // What the entries before have flushed must be there ([MS-VHDX] 2.3.1.1).
    if (int(u64, &sizes, 0) > file.size) return error.Truncated;
    replay.file_size = int(u64, &sizes, 8);
    replay.zeros = try zeros.toOwnedSlice(gpa);
    return replay;
}

pub fn deinit(replay: *Replay, gpa: Allocator) void {
    replay.pages.deinit(gpa);
    gpa.free(replay.zeros);
    replay.* = empty;
}

/// Returns whether an update concerns a range of the file.
pub fn touches(replay: *const Replay, offset: u64, size: u64) bool {
    return offset < replay.end and replay.first < offset +| size;
}

/// Puts the updates into bytes that were read at `offset`.
pub fn apply(replay: *const Replay, file: *const File, buffer: []u8, offset: u64) Fault!void {
    if (!replay.touches(offset, buffer.len)) return;
    var done: usize = 0;
    while (done < buffer.len) {
        const at = offset + done;
        const skip: usize = @intCast(at % sector_size);
        const count = @min(buffer.len - done, sector_size - skip);
        try replay.applyPage(file, buffer[done..][0..count], at - skip, skip);
        done += count;
    }
}

fn applyPage(
    replay: *const Replay,
    file: *const File,
    part: []u8,
    page_at: u64,
    skip: usize,
) Fault!void {
    const page = replay.pages.get(page_at);
    var zeroed: ?u32 = null;
    for (replay.zeros) |*range| {
        if (page_at >= range.first and page_at < range.end) zeroed = range.order;
    }
    if (zeroed) |order| if (page == null or page.?.order < order) return @memset(part, 0);
    const found = page orelse return;
    var bytes: [sector_size]u8 = undefined;
    bytes[0..8].* = found.leading;
    try file.read(bytes[8..4092], found.data_at);
    bytes[4092..4096].* = found.trailing;
    @memcpy(part, bytes[skip..][0..part.len]);
}

/// Looks for the sequence with the highest number whose head knows its tail ([MS-VHDX] 2.3.3).
fn findActive(file: *const File, log: *LogRegion) Fault!?Sequence {
    var found: ?Sequence = null;
    var at: u64 = 0;
    while (at < log.size) {
        const sequence = try readSequence(file, log, at) orelse {
            at += sector_size;
            continue;
        };
        const head = &sequence.head;
        if (found == null or head.sequence > found.?.head.sequence) {
            if (try fromTail(file, log, &sequence)) |active| found = active;
        }
        // Entries of a sequence begin no other one, but for one that continues at the log's start.
        const end = head.at + head.size;
        if (end <= at or end > log.size) break;
        at = end;
    }
    return found;
}

/// Reads entries from `first` on for as long as each has the next number.
fn readSequence(file: *const File, log: *LogRegion, first: u64) Fault!?Sequence {
    var head = try readEntry(file, log, first) orelse return null;
    var sequence: Sequence = .{ .first = first, .count = 1, .head = head };
    var used = head.size;
    while (used < log.size) {
        const next = try readEntry(file, log, wrapped(log, head.at + head.size)) orelse break;
        if (next.sequence != head.sequence +% 1 or next.size > log.size - used) break;
        used += next.size;
        head = next;
        sequence.head = head;
        sequence.count += 1;
    }
    return sequence;
}

/// Cuts a sequence at the tail that its head names; null if that is none of its entries.
fn fromTail(file: *const File, log: *LogRegion, sequence: *const Sequence) Fault!?Sequence {
    var at = sequence.first;
    for (0..sequence.count) |index| {
        if (at == sequence.head.tail) return .{
            .first = at,
            .count = sequence.count - @as(u32, @intCast(index)),
            .head = sequence.head,
        };
        const entry = try readEntry(file, log, at) orelse return null;
        at = wrapped(log, at + entry.size);
    }
    return null;
}

/// Returns a valid entry of this log, or null ([MS-VHDX] 2.3.1).
fn readEntry(file: *const File, log: *LogRegion, at: u64) Fault!?Entry {
    var head: [entry_head_size]u8 = undefined;
    try readLog(file, log, &head, at);
    if (!std.mem.startsWith(u8, &head, "loge") or !std.mem.eql(u8, head[32..48], &log.id))
        return null;
    const entry: Entry = .{
        .at = at,
        .size = int(u32, &head, 8),
        .tail = int(u32, &head, 12),
        .sequence = int(u64, &head, 16),
        .descriptors = int(u32, &head, 24),
    };
    if (entry.size == 0 or entry.size % sector_size != 0 or entry.size > log.size) return null;
    if (entry.tail % sector_size != 0 or entry.tail >= log.size) return null;
    if (entry.sequence == 0 or dataFrom(&entry) > entry.size) return null;
    if (entry.size > log.bytes_left) return error.LogDamaged;
    log.bytes_left -= entry.size;
    var crc: Crc32c = .init();
    var part: [sector_size]u8 = undefined;
    var done: u64 = 0;
    while (done < entry.size) : (done += part.len) {
        try readLog(file, log, &part, at + done);
        if (done == 0) @memset(part[4..8], 0);
        crc.update(&part);
    }
    return if (crc.final() == int(u32, &head, 4)) entry else null;
}

/// Where an entry's data sectors begin: behind its descriptors, at a whole sector.
fn dataFrom(entry: *const Entry) u64 {
    const size = entry_head_size + @as(u64, entry.descriptors) * descriptor_size;
    return std.mem.alignForward(u64, size, sector_size);
}

fn take(
    replay: *Replay,
    gpa: Allocator,
    file: *const File,
    log: *LogRegion,
    entry: *const Entry,
    order: *u32,
    zeros: *std.ArrayList(ZeroRange),
) Fault!void {
    var data_at = dataFrom(entry);
    for (0..entry.descriptors) |index| {
        var descriptor: [descriptor_size]u8 = undefined;
        try readLog(
            file,
            log,
            &descriptor,
            entry.at + entry_head_size + index * descriptor_size,
        );
        if (int(u64, &descriptor, 24) != entry.sequence) return error.LogDamaged;
        order.* += 1;
        const at = int(u64, &descriptor, 16);
        if (at % sector_size != 0) return error.LogDamaged;
        if (std.mem.startsWith(u8, &descriptor, "zero")) {
            const size = int(u64, &descriptor, 8);
            if (size % sector_size != 0) return error.LogDamaged;
            if (zeros.items.len == zeros_max) return error.TooManyPatches;
            const end = std.math.add(u64, at, size) catch return error.LogDamaged;
            try zeros.append(gpa, .{ .order = order.*, .first = at, .end = end });
            replay.include(at, end);
            continue;
        }
        if (!std.mem.startsWith(u8, &descriptor, "desc")) return error.LogDamaged;
        if (data_at >= entry.size) return error.LogDamaged;
        try checkSector(file, log, entry, data_at);
        try replay.pages.put(gpa, at, .{
            .order = order.*,
            .data_at = log.at + wrapped(log, entry.at + data_at) + 4 + 4,
            .leading = descriptor[8..16].*,
            .trailing = descriptor[4..8].*,
        });
        replay.include(at, at +| sector_size);
        data_at += sector_size;
    }
}

fn include(replay: *Replay, first: u64, end: u64) void {
    replay.first = @min(replay.first, first);
    replay.end = @max(replay.end, end);
}

/// A data sector has the entry's sequence number, in two halves ([MS-VHDX] 2.3.1.4).
fn checkSector(
    file: *const File,
    log: *LogRegion,
    entry: *const Entry,
    data_at: u64,
) Fault!void {
    var sector: [sector_size]u8 = undefined;
    try readLog(file, log, &sector, entry.at + data_at);
    const number = @as(u64, int(u32, &sector, 4)) << 32 | int(u32, &sector, 4092);
    if (!std.mem.startsWith(u8, &sector, "data") or number != entry.sequence)
        return error.LogDamaged;
}

fn wrapped(log: *LogRegion, at: u64) u64 {
    return at % log.size;
}

/// Reads from byte `at` of the log, which is a ring. No read crosses a sector.
fn readLog(file: *const File, log: *LogRegion, buffer: []u8, at: u64) Fault!void {
    return file.read(buffer, log.at + wrapped(log, at));
}
