//! The image of an import (packages/proto/UPLINK.md, "Jobs"): a file below the store's directory,
//! or an upload that the host fetches first.

const std = @import("std");
const base = @import("base");
const desired_state = @import("desired_state.zig");

const Order = desired_state.StoreJob;

/// Of a path below the store's directory.
pub const path_size_max = 255;
/// Numbers of JSON are exact up to here.
const number_max = (1 << 53) - 1;

/// Returns why an import cannot find its image; null: it can.
pub fn problemOf(order: *const Order) ?[]const u8 {
    if (order.uploadId != null) {
        if (order.sourcePath != null) return "it names two images";
        return if (uploadOf(order) == null) "it does not describe the upload" else null;
    }
    return pathProblem(order.sourcePath orelse return "it does not say where the image lies");
}

/// Where the host puts an upload that it has fetched, below the store's directory.
pub const fetched_folder = "imports/.fetched";

pub const Upload = struct { id: base.Uuid, size: u64, sha256: [32]u8 };

/// Returns the upload that an import takes; null: another job, or one that does not describe it.
pub fn uploadOf(order: *const Order) ?Upload {
    if (!std.mem.eql(u8, order.kind, "import")) return null;
    const text = order.sourceSha256 orelse return null;
    var upload: Upload = .{
        .id = order.uploadId orelse return null,
        .size = order.sourceSizeBytes orelse return null,
        .sha256 = undefined,
    };
    if (text.len != 2 * upload.sha256.len) return null;
    if (upload.size == 0 or upload.size > number_max) return null;
    _ = std.fmt.hexToBytes(&upload.sha256, text) catch return null;
    return upload;
}

/// Returns why a path cannot be an argument.
pub fn pathProblem(path: []const u8) ?[]const u8 {
    if (path.len == 0 or path.len > path_size_max) return "a path in it is empty or too long";
    for (path) |byte| if (std.ascii.isControl(byte)) return "a path in it has control characters";
    // It would be parsed as an option.
    return if (path[0] == '-') "a path in it begins with a dash" else null;
}
