//! A desired state as a change of the one that this edge has (packages/proto/UPLINK.md, "Deltas").
//! Pure. Nothing here is trusted: the payload that it makes must have the organization's signature,
//! as one that came whole.

const std = @import("std");
const base = @import("base");
const assert = std.debug.assert;

/// SHA-256 in hex.
pub const Digest = [64]u8;

pub fn digestOf(payload: []const u8) Digest {
    var hash: [32]u8 = undefined;
    base.Sha256.hash(payload, &hash, .{});
    return std.fmt.bytesToHex(hash, .lower);
}

/// A payload that a delta may change, and what polls call it.
pub const Base = struct {
    payload: []const u8,
    digest: Digest,

    pub fn of(payload: []const u8) Base {
        return .{ .payload = payload, .digest = digestOf(payload) };
    }
};

/// Positions and sizes are in bytes of the base.
pub const Edit = struct { at: u64, remove: u64, insert: []const u8 };

/// Names are those of the JSON.
pub const Delta = struct {
    base: []const u8,
    /// In ascending order, none over another.
    edits: []const Edit,
};

/// Returns the payload that the delta makes of the base, of at most `size_max` bytes.
pub fn apply(
    gpa: std.mem.Allocator,
    former: *const Base,
    delta: *const Delta,
    size_max: usize,
) error{ Unfit, OutOfMemory }![]u8 {
    if (!std.mem.eql(u8, &former.digest, delta.base)) return error.Unfit;
    const size = try sizeAfter(former.payload.len, delta.edits);
    if (size > size_max) return error.Unfit;
    const payload = try gpa.alloc(u8, size);
    var writer: std.Io.Writer = .fixed(payload);
    var end: usize = 0;
    for (delta.edits) |*edit| {
        const at: usize = @intCast(edit.at);
        writer.writeAll(former.payload[end..at]) catch unreachable;
        writer.writeAll(edit.insert) catch unreachable;
        end = at + @as(usize, @intCast(edit.remove));
    }
    writer.writeAll(former.payload[end..]) catch unreachable;
    assert(writer.end == payload.len);
    return payload;
}

/// Fails if the edits do not lie in the base, one behind the other.
fn sizeAfter(size_before: usize, edits: []const Edit) error{Unfit}!usize {
    var size = size_before;
    var end: u64 = 0;
    for (edits) |*edit| {
        if (edit.at < end or edit.at > size_before) return error.Unfit;
        if (edit.remove > size_before - edit.at) return error.Unfit;
        end = edit.at + edit.remove;
        size = size - @as(usize, @intCast(edit.remove)) + edit.insert.len;
    }
    assert(end <= size_before);
    return size;
}

test {
    _ = @import("state_delta_test.zig");
}
