//! The contents of the edge's store as reported to its control plane (packages/proto/UPLINK.md,
//! "POST /edge/v1/store"), when that is due, and which version is to be verified next so that
//! damage is found before a device reads it. Pure.

const std = @import("std");
const base = @import("base");
const store_job = @import("store_job.zig");
const key_text = @import("key_text.zig");
const ProfileInventory = @import("../profile/inventory.zig");
const assert = std.debug.assert;

const StoredVersion = store_job.StoredVersion;
const StoreFacts = store_job.StoreFacts;

pub const versions_max = 2048;
/// Versions per page, sized for the largest boot profiles.
const page_max = 64;
/// Even if nothing has changed.
pub const report_interval_ms = 600_000;
/// Maintenance versions whose devices are connected; further ones are reported as unknown.
const written_max = 16;
pub const Written = base.BoundedArray(base.Uuid, written_max);
/// The whole store is verified within this time.
const check_interval_ms = 7 * std.time.ms_per_day;

/// When a version was last verified, and the result.
pub const Check = struct { id: base.Uuid, unixMs: u64, isDamaged: bool };

pub const StoreInventory = @This();

versions: []StoredVersion,
count: u32 = 0,
checks: []Check,
check_count: u32 = 0,
/// A complete list of the store's versions exists.
is_known: bool = false,
/// The next version that the message in progress has not included; null: everything known is
/// reported.
page_from: ?u32 = null,
sent_hash: u64 = 0,
/// Versions that devices currently write; null: unknown.
written: ?Written = null,
profiles: ProfileInventory = .{},

pub fn init(gpa: std.mem.Allocator) error{OutOfMemory}!StoreInventory {
    return .{
        .versions = try base.allocUntouched(gpa, StoredVersion, versions_max),
        .checks = try base.allocUntouched(gpa, Check, versions_max),
    };
}

pub fn deinit(inventory: *StoreInventory, gpa: std.mem.Allocator) void {
    base.freeUntouched(gpa, StoredVersion, inventory.versions);
    base.freeUntouched(gpa, Check, inventory.checks);
    inventory.* = undefined;
}

/// Takes a new list of the store's versions; `is_again`: report it even if nothing changed.
pub fn set(inventory: *StoreInventory, found: []const StoredVersion, is_again: bool) void {
    assert(found.len <= versions_max);
    @memcpy(inventory.versions[0..found.len], found);
    inventory.count = @intCast(found.len);
    inventory.is_known = true;
    var kept: u32 = 0;
    for (inventory.checks[0..inventory.check_count]) |check| if (inventory.find(check.id) != null) {
        inventory.checks[kept] = check;
        kept += 1;
    };
    assert(kept <= inventory.check_count);
    inventory.check_count = kept;
    // A report in progress starts over: its pages belong to another list.
    if (is_again or inventory.page_from != null or inventory.hash() != inventory.sent_hash)
        inventory.page_from = 0;
    assert(inventory.check_count <= inventory.checks.len);
}

/// Boot profiles may have changed; not while pages are sent, which belong to one list.
pub fn profilesChanged(inventory: *StoreInventory) void {
    assert(inventory.page_from == null);
    if (inventory.is_known and inventory.hash() != inventory.sent_hash) inventory.page_from = 0;
}

pub fn note(inventory: *StoreInventory, check: Check) void {
    if (inventory.find(check.id) == null) return;
    const was_damaged = if (inventory.checkOf(check.id)) |known| known.isDamaged else false;
    if (inventory.checkOf(check.id)) |known| known.* = check else {
        if (inventory.check_count == versions_max) return;
        inventory.checks[inventory.check_count] = check;
        inventory.check_count += 1;
    }
    // The time of a good verification is reported with the next inventory.
    if (check.isDamaged != was_damaged) inventory.page_from = 0;
    assert(inventory.check_count <= inventory.checks.len);
}

/// Makes a version that was found damaged the next to verify; false: it was not found damaged.
pub fn checkAgain(inventory: *StoreInventory, id: base.Uuid) bool {
    const check = inventory.checkOf(id) orelse return false;
    if (!check.isDamaged) return false;
    check.unixMs = 0;
    return true;
}

fn find(inventory: *const StoreInventory, id: base.Uuid) ?*StoredVersion {
    for (inventory.versions[0..inventory.count]) |*version|
        if (version.version_id.eql(id)) return version;
    return null;
}

fn checkOf(inventory: *const StoreInventory, id: base.Uuid) ?*Check {
    for (inventory.checks[0..inventory.check_count]) |*check| if (check.id.eql(id)) return check;
    return null;
}

pub fn damagedCount(inventory: *const StoreInventory) u32 {
    var count: u32 = 0;
    for (inventory.versions[0..inventory.count]) |*version|
        count += @intFromBool(inventory.stateOf(version) == .damaged);
    return count;
}

fn stateOf(inventory: *const StoreInventory, version: *const StoredVersion) store_job.VersionState {
    const check = inventory.checkOf(version.version_id) orelse return version.state;
    return if (check.isDamaged) .damaged else version.state;
}

/// `version`: one of `versions`.
pub fn isDamaged(inventory: *const StoreInventory, version: *const StoredVersion) bool {
    return inventory.stateOf(version) == .damaged;
}

fn isWritten(inventory: *const StoreInventory, version: *const StoredVersion) ?bool {
    if (!version.is_layer) return null;
    const written = if (inventory.written) |*known| known else return null;
    for (written.constSlice()) |id| if (id.eql(version.version_id)) return true;
    return if (written.count == written_max) null else false;
}

/// Returns the version that was never verified, or longest ago, if that is long enough; null:
/// none is due.
pub fn nextToCheck(inventory: *const StoreInventory, unix_ms: u64) ?base.Uuid {
    var due: ?base.Uuid = null;
    var due_ms: u64 = unix_ms -| check_interval_ms;
    for (inventory.versions[0..inventory.count]) |*version| {
        if (version.state != .present or version.is_layer) continue;
        const check = inventory.checkOf(version.version_id) orelse return version.version_id;
        // The clock was set back.
        const at_ms = if (check.unixMs > unix_ms) 0 else check.unixMs;
        if (at_ms >= due_ms) continue;
        due = version.version_id;
        due_ms = at_ms;
    }
    return due;
}

fn hash(inventory: *const StoreInventory) u64 {
    var sum: std.hash.Wyhash = .init(1);
    for (inventory.versions[0..inventory.count]) |*version| {
        sum.update(&version.version_id.bytes);
        sum.update(@tagName(inventory.stateOf(version)));
        if (version.root) |*root| sum.update(root);
        sum.update(&.{
            @intFromBool(version.is_layer),
            if (inventory.isWritten(version)) |known| @intFromBool(known) else 2,
        });
        for ([_]u64{ version.own_bytes, version.shared_bytes, version.reclaimable_bytes }) |size|
            sum.update(std.mem.asBytes(&size));
        inventory.profiles.hashInto(&sum, version.version_id);
    }
    return sum.final();
}

/// Writes the member `inventory` of a message: the next page. Only if `page_from` is set.
pub fn writePage(
    inventory: *const StoreInventory,
    writer: *std.Io.Writer,
    scan: u64,
) std.Io.Writer.Error!void {
    const from = inventory.page_from.?;
    const until = @min(from + page_max, inventory.count);
    try writer.print("\"inventory\":{{\"scan\":{d},\"isLast\":{},\"versions\":[", .{
        scan, until == inventory.count,
    });
    for (inventory.versions[from..until], 0..) |*version, index| {
        if (index > 0) try writer.writeByte(',');
        try writer.print("{{\"versionId\":\"{f}\",\"state\":\"{t}\"", .{
            version.version_id, inventory.stateOf(version),
        });
        if (version.root) |root| try writer.print(",\"root\":\"{s}\"", .{&key_text.write(root)});
        if (version.image) |*image| try writeImage(writer, image);
        if (version.is_layer) try writer.writeAll(",\"isLayer\":true");
        if (inventory.isWritten(version)) |known| try writer.print(",\"isWritten\":{}", .{known});
        try writer.print(",\"ownBytes\":{d},\"sharedBytes\":{d},\"reclaimableBytes\":{d}", .{
            version.own_bytes, version.shared_bytes, version.reclaimable_bytes,
        });
        if (inventory.checkOf(version.version_id)) |check| if (!check.isDamaged)
            try writer.print(",\"checkedUnixMs\":{d}", .{check.unixMs});
        try inventory.profiles.write(writer, version.version_id);
        try writer.writeByte('}');
    }
    try writer.writeAll("]},");
}

/// The page was accepted.
pub fn onPageSent(inventory: *StoreInventory) void {
    const until = inventory.page_from.? + page_max;
    inventory.page_from = if (until < inventory.count) until else null;
    if (inventory.page_from == null) inventory.sent_hash = inventory.hash();
}

fn writeImage(writer: *std.Io.Writer, image: *const store_job.Image) std.Io.Writer.Error!void {
    try writer.print(
        ",\"image\":{{\"name\":{f},\"sizeBytes\":{d},\"createdUnixMs\":{d},\"hasKernel\":{}",
        .{
            std.json.fmt(image.name.slice(), .{}),
            image.size_bytes,
            image.created_unix_ms,
            image.has_kernel,
        },
    );
    if (image.organization_id) |id| try writer.print(",\"organizationId\":\"{f}\"", .{id});
    if (image.parent_id) |id| try writer.print(",\"parentVersionId\":\"{f}\"", .{id});
    try writer.writeByte('}');
}

pub fn writeFacts(writer: *std.Io.Writer, facts: *const StoreFacts) std.Io.Writer.Error!void {
    try writer.print("\"store\":{{\"id\":\"{f}\",\"publicKey\":\"{s}\",\"format\":{d}", .{
        facts.id, &key_text.write(facts.public_key), facts.format,
    });
    if (facts.problem.size > 0)
        try writer.print(",\"problem\":{f}", .{std.json.fmt(facts.problem.slice(), .{})});
    try writer.writeAll("},");
}

const testing = std.testing;

fn uuid(number: u8) base.Uuid {
    return .fromRandom(@splat(number));
}

fn testVersion(number: u8) StoredVersion {
    return .{
        .version_id = uuid(number),
        .state = .present,
        .root = @splat(number),
        .own_bytes = number,
        .shared_bytes = 0,
        .reclaimable_bytes = 0,
    };
}

test "an inventory is reported once, again after a change, and in pages" {
    var inventory: StoreInventory = try .init(testing.allocator);
    defer inventory.deinit(testing.allocator);
    try testing.expectEqual(null, inventory.page_from);
    inventory.set(&.{}, true);
    try testing.expectEqual(0, inventory.page_from.?);
    inventory.onPageSent();
    inventory.set(&.{}, false);
    try testing.expectEqual(null, inventory.page_from);
    var many: [page_max + 1]StoredVersion = @splat(testVersion(1));
    many[page_max] = testVersion(2);
    many[page_max].image = .{
        .name = .init("a \"b\""),
        .size_bytes = 512,
        .created_unix_ms = 7,
        .has_kernel = true,
        .organization_id = null,
        .parent_id = uuid(1),
    };
    inventory.set(&many, false);
    var buffer: [128 * 1024]u8 = undefined;
    var writer: std.Io.Writer = .fixed(&buffer);
    try inventory.writePage(&writer, 7);
    try testing.expect(
        std.mem.startsWith(u8, writer.buffered(), "\"inventory\":{\"scan\":7,\"isLast\":false,"),
    );
    inventory.onPageSent();
    writer = .fixed(&buffer);
    try inventory.writePage(&writer, 7);
    try testing.expectEqualStrings("\"inventory\":{\"scan\":7,\"isLast\":true," ++
        "\"versions\":[{\"versionId\":\"" ++
        uuid(2).toText() ++
        "\",\"state\":\"present\",\"root\":\"AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=\",\"image\":{\"name\":\"a \\\"b\\\"\",\"sizeBytes\":512,\"createdUnixMs\":7,\"hasKernel\":true,\"parentVersionId\":\"" ++ uuid(1).toText() ++
        "\"},\"ownBytes\":2,\"sharedBytes\":0,\"reclaimableBytes\":0}]},", writer.buffered());
    inventory.onPageSent();
    try testing.expectEqual(null, inventory.page_from);
    inventory.set(&many, false);
    try testing.expectEqual(null, inventory.page_from);
    many[0].own_bytes += 1;
    inventory.set(&many, false);
    try testing.expectEqual(0, inventory.page_from.?);
}

test "an unsealed version is reported with whether its device writes it, once that is known" {
    var inventory: StoreInventory = try .init(testing.allocator);
    defer inventory.deinit(testing.allocator);
    var layer = testVersion(1);
    layer.is_layer = true;
    layer.root = null;
    const found = [_]StoredVersion{ layer, testVersion(2) };
    inventory.set(&found, false);
    inventory.onPageSent();
    var buffer: [4096]u8 = undefined;
    for ([_][]const base.Uuid{ &.{}, &.{uuid(1)} }, [_][]const u8{
        "\"isLayer\":true,\"isWritten\":false",
        "\"isLayer\":true,\"isWritten\":true",
    }) |ids, expected| {
        inventory.written = .empty;
        for (ids) |id| inventory.written.?.append(id) catch unreachable;
        inventory.set(&found, false);
        try testing.expectEqual(0, inventory.page_from.?);
        var writer: std.Io.Writer = .fixed(&buffer);
        try inventory.writePage(&writer, 1);
        try testing.expect(std.mem.find(u8, writer.buffered(), expected) != null);
        try testing.expectEqual(1, std.mem.count(u8, writer.buffered(), "isWritten"));
        inventory.onPageSent();
    }
    inventory.set(&found, false);
    try testing.expectEqual(null, inventory.page_from);
}

test "boot profiles are reported with the next inventory, which fits the most that can exist" {
    var inventory: StoreInventory = try .init(testing.allocator);
    defer inventory.deinit(testing.allocator);
    const most = (1 << 53) - 1;
    var many: [page_max]StoredVersion = undefined;
    for (&many, 0..) |*version, index| version.* = .{
        .version_id = uuid(@intCast(index)),
        .state = .importing,
        .root = @splat(9),
        .image = .{
            .name = .init(&@as([64]u8, @splat('"'))),
            .size_bytes = most,
            .created_unix_ms = most,
            .has_kernel = false,
            .organization_id = uuid(1),
            .parent_id = uuid(2),
        },
        .is_layer = true,
        .own_bytes = most,
        .shared_bytes = most,
        .reclaimable_bytes = most,
    };
    inventory.written = .empty;
    inventory.set(&many, false);
    for (&many) |*version|
        inventory.note(.{ .id = version.version_id, .unixMs = most, .isDamaged = false });
    inventory.onPageSent();
    inventory.profilesChanged();
    try testing.expectEqual(null, inventory.page_from);
    for (0..ProfileInventory.profiles_max) |index| try testing.expect(inventory.profiles.put(&.{
        .version_id = uuid(@intCast(index % page_max)),
        .key = index,
        .hardware = .init(&@as([64]u8, @splat('"'))),
        .boots = std.math.maxInt(u32),
        .read_ahead_bytes = 256 << 20,
        .units = 8190,
        .learned_unix_ms = 8_640_000_000_000_000,
    }));
    inventory.profilesChanged();
    var buffer: [127 * 1024]u8 = undefined;
    var writer: std.Io.Writer = .fixed(&buffer);
    try inventory.writePage(&writer, most);
    try testing.expectEqual(
        ProfileInventory.profiles_max,
        std.mem.count(u8, writer.buffered(), "\"hardware\""),
    );
    inventory.onPageSent();
    inventory.profilesChanged();
    try testing.expectEqual(null, inventory.page_from);
}

test "unverified versions come first, then the oldest check; damage stands until the next" {
    var inventory: StoreInventory = try .init(testing.allocator);
    defer inventory.deinit(testing.allocator);
    const now: u64 = 10 * check_interval_ms;
    inventory.set(&.{ testVersion(1), testVersion(2), testVersion(3) }, false);
    inventory.onPageSent();
    for ([_]u8{ 1, 3, 2 }, 0..) |number, index| {
        const due = inventory.nextToCheck(now).?;
        inventory.note(.{ .id = due, .unixMs = now + number, .isDamaged = false });
        try testing.expectEqual(uuid(@intCast(index + 1)), due);
    }
    try testing.expectEqual(null, inventory.page_from);
    try testing.expectEqual(null, inventory.nextToCheck(now + 3));
    try testing.expectEqual(uuid(1), inventory.nextToCheck(now + check_interval_ms + 3).?);
    inventory.note(.{ .id = uuid(2), .unixMs = now, .isDamaged = true });
    try testing.expectEqual(0, inventory.page_from.?);
    try testing.expectEqual(1, inventory.damagedCount());
    // Its record is removed with it.
    inventory.set(&.{testVersion(3)}, false);
    try testing.expectEqual(1, inventory.check_count);
    try testing.expectEqual(0, inventory.damagedCount());
    // A clock that was set back requires a new check.
    try testing.expectEqual(uuid(3), inventory.nextToCheck(now - 1).?);
}
