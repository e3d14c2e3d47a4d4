//! The versions that are open for reading: disk, kernel and initramfs of each, opened when a boot
//! needs them. Fixed size; a version that boots still use stays open when the desired state no
//! longer names it.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const store = @import("store");
const assert = std.debug.assert;

const StoreFile = store.StoreFile;

pub const Version = struct {
    id: base.Uuid,
    disk: StoreFile,
    kernel: ?StoreFile = null,
    initrd: ?StoreFile = null,
    command_line_buffer: [core.desired_state.command_line_size_max]u8 = undefined,
    command_line_size: u16 = 0,

    pub fn commandLine(version: *const Version) []const u8 {
        return version.command_line_buffer[0..version.command_line_size];
    }

    /// The text passed `boot_policy.isCommandLine`.
    pub fn setCommandLine(version: *Version, text: []const u8) void {
        assert(text.len <= version.command_line_buffer.len);
        @memcpy(version.command_line_buffer[0..text.len], text);
        version.command_line_size = @intCast(text.len);
    }

    pub fn close(version: *Version) void {
        version.disk.close();
        if (version.kernel) |*file| file.close();
        if (version.initrd) |*file| file.close();
    }
};

pub const Problem = union(enum) {
    file: struct { path: []const u8, why: store.store_file.OpenError },
    /// A copy that has not arrived whole.
    size: struct { path: []const u8, want: u64, have: u64 },
    /// Every place is taken.
    full,
    /// The desired state names a version that it does not describe, or describes in a way that
    /// cannot be used.
    not_described,
};

pub const VersionTable = struct {
    versions: []?Version,

    pub const capacity_default = 256;

    pub fn init(gpa: std.mem.Allocator, capacity: u32) error{OutOfMemory}!VersionTable {
        const versions = try gpa.alloc(?Version, capacity);
        @memset(versions, null);
        return .{ .versions = versions };
    }

    pub fn deinit(table: *VersionTable, gpa: std.mem.Allocator) void {
        for (table.versions) |*place| if (place.*) |*version| version.close();
        gpa.free(table.versions);
        table.* = undefined;
    }

    pub fn find(table: *VersionTable, id: base.Uuid) ?*Version {
        for (table.versions) |*place| {
            const version = if (place.*) |*value| value else continue;
            if (version.id.eql(id)) return version;
        }
        return null;
    }

    pub fn add(table: *VersionTable, version: Version) error{Full}!void {
        for (table.versions) |*place| {
            if (place.* != null) continue;
            place.* = version;
            return;
        }
        return error.Full;
    }

    /// Opens what the desired state describes; null when it is open. Problem: what a person has to
    /// know.
    pub fn open(
        table: *VersionTable,
        store_fd: i32,
        described: *const core.desired_state.Version,
    ) ?Problem {
        if (table.find(described.id) != null) return null;
        var problem: Problem = undefined;
        const version = openVersion(store_fd, described, &problem) catch return problem;
        table.add(version) catch {
            var closing = version;
            closing.close();
            return .full;
        };
        return null;
    }

    /// Closes what neither a boot nor the desired state uses.
    pub fn closeUnused(
        table: *VersionTable,
        boots: *core.BootTable,
        state: *const core.desired_state.DesiredState,
    ) void {
        for (table.versions) |*place| {
            const version = if (place.*) |*value| value else continue;
            if (isDescribed(state, version.id) or isUsed(boots, version.id)) continue;
            version.close();
            place.* = null;
        }
    }

    fn isDescribed(state: *const core.desired_state.DesiredState, id: base.Uuid) bool {
        return describedVersion(state, id) != null;
    }

    fn isUsed(boots: *core.BootTable, id: base.Uuid) bool {
        var iterator = boots.iterate();
        while (iterator.next()) |boot| if (boot.assignment.version_id.eql(id)) return true;
        return false;
    }
};

pub fn describedVersion(
    state: *const core.desired_state.DesiredState,
    id: base.Uuid,
) ?*const core.desired_state.Version {
    for (state.vdisks) |*vdisk| {
        for (vdisk.versions) |*version| if (version.id.eql(id)) return version;
    }
    return null;
}

fn openVersion(
    store_fd: i32,
    described: *const core.desired_state.Version,
    problem: *Problem,
) error{Problem}!Version {
    var version: Version = .{
        .id = described.id,
        .disk = try openFile(store_fd, described.diskPath, .disk, problem),
    };
    errdefer version.close();
    if (version.disk.size != described.sizeBytes) {
        problem.* = .{ .size = .{
            .path = described.diskPath,
            .want = described.sizeBytes,
            .have = version.disk.size,
        } };
        return error.Problem;
    }
    if (described.kernelPath) |path| version.kernel = try openFile(store_fd, path, .plain, problem);
    if (described.initrdPath) |path| version.initrd = try openFile(store_fd, path, .plain, problem);
    version.setCommandLine(described.commandLine);
    return version;
}

fn openFile(
    store_fd: i32,
    path: []const u8,
    kind: store.store_file.Kind,
    problem: *Problem,
) error{Problem}!StoreFile {
    return StoreFile.openBelow(store_fd, path, kind) catch |err| {
        problem.* = .{ .file = .{ .path = path, .why = err } };
        return error.Problem;
    };
}

const testing = std.testing;

test "a version of the desired state is opened whole or not at all" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    try tmp.dir.writeFile(testing.io, .{ .sub_path = "disk", .data = &@as([1024]u8, @splat(1)) });
    try tmp.dir.writeFile(testing.io, .{ .sub_path = "kernel", .data = "k" });
    var table: VersionTable = try .init(testing.allocator, 1);
    defer table.deinit(testing.allocator);
    var described: core.desired_state.Version = .{
        .id = .fromRandom(@splat(1)),
        .number = 1,
        .sizeBytes = 1024,
        .diskPath = "disk",
        .kernelPath = "absent",
        .commandLine = "quiet",
    };
    const fd = tmp.dir.handle;
    try testing.expectEqual(error.Missing, table.open(fd, &described).?.file.why);
    described.kernelPath = "kernel";
    described.sizeBytes = 2048;
    try testing.expectEqual(1024, table.open(fd, &described).?.size.have);
    described.sizeBytes = 1024;
    try testing.expectEqual(null, table.open(fd, &described));
    try testing.expectEqual(null, table.open(fd, &described));
    try testing.expectEqualStrings("quiet", table.find(described.id).?.commandLine());
    described.id = .fromRandom(@splat(2));
    try testing.expectEqual(Problem.full, table.open(fd, &described).?);
}
