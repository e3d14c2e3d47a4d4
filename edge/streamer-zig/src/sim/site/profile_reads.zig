//! What the devices of a simulated site have read of each version, for the check that a boot
//! profile has nothing else. The account is of all edges and outlives their crashes, as the
//! profiles do.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const profile = @import("wire").stream.profile;
const Disk = @import("disk.zig");

pub const ProfileReads = @This();

const BlockSet = std.DynamicBitSetUnmanaged;

versions: []const Disk.Version,
blocks: []BlockSet,
/// As its device opens it.
copy: [profile.document_size_max]u8 = undefined,
/// Documents that were handed out.
handed: u64 = 0,

pub fn init(
    gpa: std.mem.Allocator,
    versions: []const Disk.Version,
) error{OutOfMemory}!ProfileReads {
    const blocks = try gpa.alloc(BlockSet, versions.len);
    var made: usize = 0;
    errdefer {
        for (blocks[0..made]) |*of| of.deinit(gpa);
        gpa.free(blocks);
    }
    for (blocks, versions) |*of, version| {
        of.* = try .initEmpty(gpa, blockCount(version.size));
        made += 1;
    }
    return .{ .versions = versions, .blocks = blocks };
}

pub fn deinit(reads: *ProfileReads, gpa: std.mem.Allocator) void {
    for (reads.blocks) |*of| of.deinit(gpa);
    gpa.free(reads.blocks);
    reads.* = undefined;
}

fn blockCount(size: u64) usize {
    return @intCast((size + profile.block_size - 1) / profile.block_size);
}

/// Notes a READ of a device whose writes end with its boot. What another device reads, other boots
/// of the version do not have.
pub fn note(reads: *ProfileReads, request: *const core.stream.Server.ReadRequest) void {
    if (request.kind != .demand) return;
    const of = reads.blocksOf(request.version_id) orelse return;
    const first: usize = @intCast(request.offset / profile.block_size);
    const end = blockCount(request.offset + request.length);
    of.setRangeValue(.{ .start = first, .end = @min(end, of.bit_length) }, true);
}

/// Returns what is wrong with a document for boots of this version; null: nothing.
pub fn check(reads: *ProfileReads, version_id: base.Uuid, document: []const u8) ?[]const u8 {
    const of = reads.blocksOf(version_id) orelse return "is of a version that never was";
    if (document.len > profile.document_size_max) return "is too large";
    const copy = reads.copy[0..document.len];
    @memcpy(copy, document);
    const units = profile.openDocument(copy) catch return "cannot be read by its device";
    for (0..units.count()) |index| {
        const unit = units.at(@intCast(index));
        const first: usize = @intCast(unit.index * profile.unit_blocks);
        for (0..profile.unit_blocks) |block| {
            if (unit.blocks >> @intCast(block) & 1 == 0) continue;
            if (first + block >= of.bit_length or !of.isSet(first + block))
                return "has a block that no boot of its version has read";
        }
    }
    return null;
}

fn blocksOf(reads: *ProfileReads, version_id: base.Uuid) ?*BlockSet {
    for (reads.versions, reads.blocks) |*version, *of| if (version.id.eql(version_id)) return of;
    return null;
}
