//! Reads ahead of boots, into this machine's memory, what they will need of a version, and packs it
//! for the stream: in the order of its profile, verifying each block, at a limited rate and with
//! the lowest priority for disk and processor. What all boots of the version send is then packed
//! once more, into fewer bytes.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const lz4 = @import("codec").lz4;
const store = @import("store");
const wire = @import("wire").stream.profile;
const profile_files = @import("agent").profile_files;
const AnswerPieces = @import("../stream/answer_pieces.zig");
const PiecePacker = @import("../stream/piece_packer.zig");
const machine_facts = @import("../metrics/machine_facts.zig");
const linux = std.os.linux;

const BootProfile = core.profile.BootProfile;
const Uuid = base.Uuid;

/// Bytes of one step, and the pause after it: at most 100 MiB/s.
const step_bytes = 1 << 20;
const step_pause_ns = 10 * std.time.ns_per_ms;
const waiting_max = 16;
/// The part of the free memory that a version may take.
const memory_part = 4;
/// Nodes of one version's trees; not those of the packet loop.
const cache_nodes = 64;

pub const Warmer = @This();

/// Null: nothing is packed.
packer: ?*PiecePacker = null,
waiting: [waiting_max]Waiting = undefined,
waiting_count: u8 = 0,
open: ?*Open = null,
/// Made when it is first needed.
search: ?*lz4.Search = null,
gpa: std.mem.Allocator = undefined,
files: store.Files = undefined,

const Waiting = struct { version_id: Uuid, why: Why };

/// `learned`: the profile has changed; what is packed already is not read again.
pub const Why = enum { opened, learned };

const Open = struct {
    why: Why,
    from: store.Store,
    version: store.OpenVersion,
    units: []const BootProfile.Unit,
    pass: enum { read, shrink } = .read,
    next: usize = 0,
    bytes_left: u64,
};

/// Not while a version is open.
pub fn deinit(warmer: *Warmer) void {
    std.debug.assert(warmer.open == null);
    if (warmer.search) |search| warmer.gpa.destroy(search);
}

pub fn isIdle(warmer: *const Warmer) bool {
    return warmer.open == null and warmer.waiting_count == 0;
}

/// Queues a version; what does not fit is not warmed.
pub fn begin(
    warmer: *Warmer,
    gpa: std.mem.Allocator,
    files: store.Files,
    version_id: Uuid,
    why: Why,
) void {
    if (why == .learned and warmer.packer == null) return;
    warmer.gpa = gpa;
    warmer.files = files;
    for (warmer.waiting[0..warmer.waiting_count]) |*waiting|
        if (waiting.version_id.eql(version_id)) return;
    if (warmer.waiting_count == waiting_max) return;
    warmer.waiting[warmer.waiting_count] = .{ .version_id = version_id, .why = why };
    warmer.waiting_count += 1;
}

/// Reads or shrinks a bounded piece and pauses; returns the bytes that were read for the first
/// time. `profile` and `buffer` are scratch space.
pub fn step(warmer: *Warmer, profile: *BootProfile, buffer: *[BootProfile.file_size_max]u8) u64 {
    const open = warmer.open orelse {
        warmer.openNext(profile, buffer) catch {};
        return 0;
    };
    var block: [wire.unit_size]u8 = undefined;
    const pass = open.pass;
    var done: u64 = 0;
    while (done < step_bytes) : (open.next += 1) {
        if (open.next == open.units.len or open.bytes_left == 0) {
            if (!warmer.beginShrinking(open)) warmer.close(open);
            break;
        }
        const unit = &open.units[open.next];
        const blocks = unit.handed();
        if (blocks == 0) continue;
        const size = open.version.manifest.disk_size;
        const begin_at =
            @as(u64, unit.index) * wire.unit_size + @as(u64, @ctz(blocks)) * wire.block_size;
        const end = @as(u64, unit.index) * wire.unit_size +
            @as(u64, wire.unit_blocks - @clz(blocks)) * wire.block_size;
        if (begin_at >= size) continue;
        const bytes = block[0..@intCast(@min(end, size) - begin_at)];
        // The next reader of a damaged block finds it again and reports it.
        const is_read = warmer.take(open, bytes, begin_at) catch continue;
        if (!is_read) continue;
        done += bytes.len;
        open.bytes_left -|= bytes.len;
    }
    if (done == 0) return 0;
    const pause: linux.timespec = .{ .sec = 0, .nsec = step_pause_ns };
    _ = linux.nanosleep(&pause, null);
    return if (pass == .read) done else 0;
}

/// Returns false if nothing is left to do for the version.
fn beginShrinking(warmer: *Warmer, open: *Open) bool {
    if (open.pass == .shrink or warmer.packer == null) return false;
    if (warmer.search == null) warmer.search = warmer.gpa.create(lz4.Search) catch return false;
    open.pass = .shrink;
    open.next = 0;
    open.bytes_left = machine_facts.memoryAvailable() orelse 0;
    return true;
}

/// Returns false if nothing had to be read.
fn take(warmer: *Warmer, open: *Open, bytes: []u8, offset: u64) !bool {
    const reader = &open.version.reader;
    const packer = warmer.packer orelse {
        try reader.source().read(bytes, offset);
        return true;
    };
    const key: AnswerPieces.Key = try .ofPiece(reader, bytes.len, offset);
    switch (open.pass) {
        .read => {
            if (open.why == .learned and (key.isZeros() or packer.has(&key))) return false;
            try reader.source().read(bytes, offset);
            packer.add(reader, &key, bytes, offset);
        },
        .shrink => {
            if (!packer.canShrink(&key)) return false;
            try reader.source().read(bytes, offset);
            packer.shrink(warmer.search.?, &key, bytes);
        },
    }
    return true;
}

fn openNext(warmer: *Warmer, profile: *BootProfile, buffer: *[BootProfile.file_size_max]u8) !void {
    warmer.waiting_count -= 1;
    const version_id = warmer.waiting[warmer.waiting_count].version_id;
    const any: profile_files.ProfileName =
        .{ .version = version_id, .key = BootProfile.Class.any.key };
    _ = profile_files.read(warmer.files, any, profile, buffer) catch {
        var iterator: profile_files.Iterator = .init(warmer.files, version_id);
        const first = iterator.next() orelse return;
        if (!first.version.eql(version_id)) return;
        _ = profile_files.read(warmer.files, first, profile, buffer) catch return;
    };
    const machine = machine_facts.memoryAvailable() orelse return;
    const open = try warmer.gpa.create(Open);
    errdefer warmer.gpa.destroy(open);
    const units = try warmer.gpa.dupe(BootProfile.Unit, profile.slice());
    errdefer warmer.gpa.free(units);
    open.* = .{
        .why = warmer.waiting[warmer.waiting_count].why,
        .from = openStore(warmer.gpa, warmer.files) orelse return error.NoStore,
        .version = undefined,
        .units = units,
        .bytes_left = machine / memory_part,
    };
    errdefer open.from.close(warmer.gpa);
    open.version = try open.from.openVersion(version_id);
    warmer.open = open;
}

fn close(warmer: *Warmer, open: *Open) void {
    open.version.close();
    open.from.close(warmer.gpa);
    warmer.gpa.free(open.units);
    warmer.gpa.destroy(open);
    warmer.open = null;
}

/// Returns null if the directory has only plain files, or a store that cannot be opened, which
/// others report.
pub fn openStore(gpa: std.mem.Allocator, files: store.Files) ?store.Store {
    return store.Store.open(gpa, files, .{ .cache_nodes = cache_nodes }) catch null;
}

/// Lowers the priority of the calling thread: it gets the disk and the processor when nobody else
/// wants them.
pub fn lowerPriority() void {
    const who_process = 1;
    const class_idle = 3 << 13;
    _ = linux.syscall3(.ioprio_set, who_process, 0, class_idle);
    _ = linux.syscall3(.setpriority, 0, @as(usize, @intCast(linux.gettid())), 19);
}
