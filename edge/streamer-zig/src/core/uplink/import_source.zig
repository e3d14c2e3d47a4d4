//! The image of an import (packages/proto/UPLINK.md, "Jobs"): a file below the store's directory,
//! or an upload that the host fetches first.

const std = @import("std");
const base = @import("base");
const desired_state = @import("desired_state.zig");
const ImportUrl = @import("import_url.zig");

const Order = desired_state.StoreJob;

/// Of a path below the store's directory.
pub const path_size_max = 255;
/// Numbers of JSON are exact up to here.
const number_max = (1 << 53) - 1;

/// Returns why an import cannot find its image; null: it can.
pub fn problemOf(order: *const Order) ?[]const u8 {
    const places = [_]bool{
        order.sourcePath != null, order.uploadId != null, order.sourceUrl != null,
    };
    if (std.mem.countScalar(bool, &places, true) > 1) return "it names two images";
    if (order.sourceUrl) |text| {
        if (ImportUrl.parse(text)) |_| {} else |_| return "it names no URL which an edge fetches";
        const digest = order.sourceSha256 orelse return null;
        return if (parseDigest(digest) == null) "it names no SHA-256" else null;
    }
    if (order.uploadId != null) {
        return if (uploadOf(order) == null) "it does not describe the upload" else null;
    }
    if (order.sourcePath) |path| return pathProblem(path);
    const size = order.sourceSizeBytes orelse return "it does not say where the image lies";
    const is_disk = size > 0 and size % 512 == 0 and size <= number_max;
    return if (is_disk) null else "it names no size of a disk";
}

/// Returns the size of the empty disk that an import makes; null: it has an image.
pub fn emptySizeOf(order: *const Order) ?u64 {
    const has_image = order.sourcePath != null or order.uploadId != null or order.sourceUrl != null;
    return if (has_image) null else order.sourceSizeBytes;
}

/// Where the host puts an upload that it has fetched, below the store's directory.
pub const fetched_folder = "imports/.fetched";

pub const Upload = struct { id: base.Uuid, size: u64, sha256: [32]u8 };

/// Returns the upload that an import takes; null: another job, or one that does not describe it.
pub fn uploadOf(order: *const Order) ?Upload {
    if (!std.mem.eql(u8, order.kind, "import")) return null;
    const upload: Upload = .{
        .id = order.uploadId orelse return null,
        .size = order.sourceSizeBytes orelse return null,
        .sha256 = parseDigest(order.sourceSha256 orelse return null) orelse return null,
    };
    return if (upload.size == 0 or upload.size > number_max) null else upload;
}

fn parseDigest(text: []const u8) ?[32]u8 {
    var digest: [32]u8 = undefined;
    if (text.len != 2 * digest.len) return null;
    _ = std.fmt.hexToBytes(&digest, text) catch return null;
    return digest;
}

/// Where the image of an import is fetched from.
pub const Source = union(enum) { upload, url: []const u8 };

pub const Fetched = struct { file_id: base.Uuid, source: Source, size: ?u64, sha256: ?[32]u8 };

/// Returns what is fetched before an import; null: nothing, or it cannot be.
pub fn fetchedOf(order: *const Order) ?Fetched {
    if (!std.mem.eql(u8, order.kind, "import") or problemOf(order) != null) return null;
    if (uploadOf(order)) |upload| return .{
        .file_id = upload.id,
        .source = .upload,
        .size = upload.size,
        .sha256 = upload.sha256,
    };
    return .{
        .file_id = order.id,
        .source = .{ .url = order.sourceUrl orelse return null },
        .size = null,
        .sha256 = if (order.sourceSha256) |text| parseDigest(text) else null,
    };
}

/// Returns the name of the file into which it is fetched.
pub fn fileOf(order: *const Order) ?base.Uuid {
    return if (order.sourceUrl != null) order.id else order.uploadId;
}

/// Returns why a path cannot be an argument.
pub fn pathProblem(path: []const u8) ?[]const u8 {
    if (path.len == 0 or path.len > path_size_max) return "a path in it is empty or too long";
    for (path) |byte| if (std.ascii.isControl(byte)) return "a path in it has control characters";
    // It would be parsed as an option.
    return if (path[0] == '-') "a path in it begins with a dash" else null;
}

const testing = std.testing;

test "an import from a URL is fetched into a file of its job, and names what is wrong with it" {
    const id = base.Uuid.parse("00000000-0000-4000-8000-000000000001") catch unreachable;
    var order: Order = .{ .id = id, .kind = "import", .sourceUrl = "https://images.example/a.raw" };
    const plain = fetchedOf(&order).?;
    try testing.expect(plain.file_id.eql(id) and fileOf(&order).?.eql(id));
    try testing.expectEqualStrings(order.sourceUrl.?, plain.source.url);
    try testing.expect(plain.size == null and plain.sha256 == null);
    order.sourceSha256 = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    try testing.expectEqual(0xef, fetchedOf(&order).?.sha256.?[31]);
    order.sourceSha256 = "0123";
    try testing.expectEqualStrings("it names no SHA-256", problemOf(&order).?);
    try testing.expectEqual(null, fetchedOf(&order));
    order.sourceSha256 = null;
    order.sourcePath = "imports/a.raw";
    try testing.expectEqualStrings("it names two images", problemOf(&order).?);
    order.sourcePath = null;
    order.sourceUrl = "file:///etc/passwd";
    try testing.expectEqualStrings("it names no URL which an edge fetches", problemOf(&order).?);
    order.sourceUrl = null;
    try testing.expectEqual(null, fileOf(&order));
    try testing.expectEqualStrings("it does not say where the image lies", problemOf(&order).?);
    order.sourceSizeBytes = 1000;
    try testing.expectEqualStrings("it names no size of a disk", problemOf(&order).?);
    order.sourceSizeBytes = 1024;
    try testing.expectEqual(null, problemOf(&order));
    try testing.expectEqual(null, fetchedOf(&order));
    try testing.expectEqual(1024, emptySizeOf(&order));
    order.sourcePath = "imports/a.raw";
    try testing.expectEqual(null, emptySizeOf(&order));
}
