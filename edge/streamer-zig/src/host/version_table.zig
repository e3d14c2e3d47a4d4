//! The versions that are open for reading: disk, kernel and initramfs of each, opened when a boot
//! needs them. Fixed size; a version that boots still use stays open when the desired state no
//! longer names it.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const store = @import("store");
const disk_check = @import("disk_check.zig");
const loader_files = @import("loader_files.zig");
const stored_version = @import("stored_version.zig");
const version_disk = @import("version_disk.zig");
const assert = std.debug.assert;

const StoreFile = store.StoreFile;
const VersionDisk = version_disk.VersionDisk;

pub const Version = struct {
    id: base.Uuid,
    disk: VersionDisk,
    kernel: ?StoreFile = null,
    initrd: ?StoreFile = null,
    /// What of its file systems is not on the disk.
    disk_shortage: ?core.disk_fit.Shortage = null,
    /// What kernel and initramfs say of themselves; null where there is no kernel.
    loader_files: ?core.kernel_fit.Files = null,
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
    kernel: struct { path: []const u8, why: loader_files.Problem },
    stored: struct { id: base.Uuid, why: stored_version.Error },
    /// Every place is taken.
    full,
    /// The desired state names a version that it does not describe, or describes in a way that
    /// cannot be used.
    not_described,

    /// For a person, about the edge's store, without an end; a boot keeps 64 characters of it.
    pub fn format(problem: Problem, writer: *std.Io.Writer) std.Io.Writer.Error!void {
        switch (problem) {
            .file => |file| try writer.print("{s} {s}", .{
                file.path,
                store.store_file.sentence(file.why, .disk),
            }),
            .size => |size| try writer.print("{s} has {d} bytes instead of {d}", .{
                size.path,
                size.have,
                size.want,
            }),
            .kernel => |kernel| try writer.print("{s} {s}", .{
                kernel.path,
                loader_files.sentence(kernel.why),
            }),
            .stored => |stored| try writer.print("version {f} {s}", .{
                stored.id,
                stored_version.sentence(stored.why),
            }),
            .full => try writer.writeAll(
                "more versions are in use than this edge can keep open",
            ),
            .not_described => try writer.writeAll(
                "the desired state does not describe this version",
            ),
        }
    }
};

pub const VersionTable = struct {
    versions: []?Version,
    /// Null: the edge's store directory holds plain files alone.
    store: ?*store.Store = null,

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
        const version = openVersion(table.store, store_fd, described, &problem) catch return problem;
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
    from: ?*store.Store,
    store_fd: i32,
    described: *const core.desired_state.Version,
    problem: *Problem,
) error{Problem}!Version {
    if (described.manifest) |*manifest| {
        var version = openStored(from, store_fd, described.id, manifest, problem) catch |err| return err;
        errdefer version.close();
        try checkSize(&version, described, problem);
        version.setCommandLine(described.commandLine);
        return version;
    }
    var version: Version = .{
        .id = described.id,
        .disk = .{ .file = try openFile(store_fd, described.diskPath, .disk, problem) },
    };
    errdefer version.close();
    try checkSize(&version, described, problem);
    version.disk_shortage = disk_check.findShortage(&version.disk.source());
    if (described.kernelPath) |path| version.kernel = try openFile(store_fd, path, .plain, problem);
    if (described.initrdPath) |path| version.initrd = try openFile(store_fd, path, .plain, problem);
    if (version.kernel) |*kernel| {
        const initrd = if (version.initrd) |*file| file else null;
        version.loader_files = loader_files.inspect(kernel, initrd) catch |err| {
            problem.* = .{ .kernel = .{ .path = described.kernelPath.?, .why = err } };
            return error.Problem;
        };
    }
    version.setCommandLine(described.commandLine);
    return version;
}

fn checkSize(
    version: *const Version,
    described: *const core.desired_state.Version,
    problem: *Problem,
) error{Problem}!void {
    if (version.disk.size() != described.sizeBytes) {
        problem.* = .{ .size = .{
            .path = described.diskPath,
            .want = described.sizeBytes,
            .have = version.disk.size(),
        } };
        return error.Problem;
    }
}

/// A version of the store with all that it boots with, as its manifest says.
pub fn openStored(
    from: ?*store.Store,
    store_fd: i32,
    id: base.Uuid,
    expected: ?*const core.desired_state.Manifest,
    problem: *Problem,
) error{Problem}!Version {
    const opened = (if (from) |known| stored_version.open(known, store_fd, id, expected) else error.NoStore) catch |err| {
        problem.* = .{ .stored = .{ .id = id, .why = err } };
        return error.Problem;
    };
    const command_line = opened.version.manifest.command_line;
    var version: Version = .{
        .id = id,
        .disk = .{ .version = opened.version },
        .kernel = opened.kernel,
        .initrd = opened.initrd,
    };
    errdefer version.close();
    version.disk_shortage = disk_check.findShortage(&version.disk.source());
    if (version.kernel) |*kernel| {
        const initrd = if (version.initrd) |*file| file else null;
        version.loader_files = loader_files.inspect(kernel, initrd) catch |err| {
            problem.* = .{ .kernel = .{ .path = "the kernel in the store", .why = err } };
            return error.Problem;
        };
    }
    version.setCommandLine(command_line.constSlice());
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
const wire = @import("wire");

test "a version of the desired state is opened whole or not at all" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    try tmp.dir.writeFile(testing.io, .{ .sub_path = "disk", .data = &@as([1024]u8, @splat(1)) });
    const kernel = &wire.kernel_image.test_x86;
    try tmp.dir.writeFile(testing.io, .{ .sub_path = "kernel", .data = kernel });
    try tmp.dir.writeFile(testing.io, .{ .sub_path = "cut", .data = kernel[0..600] });
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
    described.kernelPath = "cut";
    const problem = table.open(fd, &described).?;
    try testing.expectEqual(error.CutShort, problem.kernel.why);
    var text: [64]u8 = undefined;
    try testing.expectEqualStrings(
        "cut is a kernel that was cut short",
        try std.mem.print(&text, "{f}", .{problem}),
    );
    described.kernelPath = "kernel";
    try testing.expectEqual(null, table.open(fd, &described));
    try testing.expectEqual(null, table.open(fd, &described));
    try testing.expectEqualStrings("quiet", table.find(described.id).?.commandLine());
    described.id = .fromRandom(@splat(2));
    try testing.expectEqual(Problem.full, table.open(fd, &described).?);
}
