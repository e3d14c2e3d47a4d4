//! The versions that are open for reading: disk, kernel and initramfs of each, opened by threads
//! (version_opener.zig). Its capacity is fixed; a version that boots still use stays open when the
//! desired state no longer names it.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const store = @import("store");
const disk_check = @import("disk_check.zig");
const loader_files = @import("loader_files.zig");
const stored_version = @import("stored_version.zig");
const version_disk = @import("../stream/version_disk.zig");
const assert = std.debug.assert;

const StoreFile = store.StoreFile;
const VersionDisk = version_disk.VersionDisk;

pub const Version = struct {
    id: base.Uuid,
    /// If `layer_above` is set, the disk of that version: the changes of its single writer are in a
    /// layer above.
    disk: VersionDisk,
    /// The version in maintenance, which is not sealed yet.
    layer_above: ?base.Uuid = null,
    kernel: ?StoreFile = null,
    initrd: ?StoreFile = null,
    /// The part of its file systems that is missing on the disk.
    disk_shortage: ?core.loader.disk_fit.Shortage = null,
    /// The properties that kernel and initramfs state about themselves; null without a kernel.
    loader_files: ?core.loader.kernel_fit.Files = null,
    command_line_buffer: [core.uplink.desired_state.command_line_size_max]u8 = undefined,
    command_line_size: u16 = 0,

    pub fn commandLine(version: *const Version) []const u8 {
        return version.command_line_buffer[0..version.command_line_size];
    }

    /// The text has passed `isCommandLine`.
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
    /// An incomplete copy.
    size: struct { path: []const u8, want: u64, have: u64 },
    kernel: struct { path: []const u8, why: loader_files.Problem },
    stored: struct { id: base.Uuid, why: stored_version.Error },
    /// Every slot is taken.
    full,
    /// The desired state names a version without a usable description.
    not_described,
    /// The version below one in maintenance is not in the store.
    nothing_below,

    /// The edge's store does not have it.
    pub fn isGone(problem: Problem) bool {
        return problem == .not_described or
            (problem == .stored and problem.stored.why == error.Missing);
    }

    /// More versions are in use than fit.
    pub fn isFull(problem: Problem) bool {
        return problem == .full;
    }

    /// For a person, about the edge's store, without an end; a boot keeps 64 characters of it.
    pub fn format(problem: Problem, writer: *std.Io.Writer) std.Io.Writer.Error!void {
        switch (problem) {
            .file => |file| try writer.print("{s} {s}", .{
                file.path, store.store_file.sentence(file.why, .disk),
            }),
            .size => |size| try writer.print("{s} has {d} bytes instead of {d}", .{
                size.path, size.have, size.want,
            }),
            .kernel => |kernel| try writer.print("{s} {s}", .{
                kernel.path, loader_files.sentence(kernel.why),
            }),
            .stored => |stored| try writer.print("version {f} {s}", .{
                stored.id, stored_version.sentence(stored.why),
            }),
            .full => try writer.writeAll("more versions are in use than this edge can keep open"),
            .not_described => try writer.writeAll(
                "the desired state does not describe this version",
            ),
            .nothing_below => try writer.writeAll("the version below it is not in the store"),
        }
    }
};

pub const VersionTable = struct {
    versions: []?Version,
    /// Null: the edge's store directory has only plain files.
    store: ?*store.Store = null,
    /// The place at which the next search for one to give up begins.
    next_given_up: u32 = 0,

    pub const capacity_default = 256;
    /// Each is looked for in all boots.
    const given_up_tries_max = 8;

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

    /// Takes a version that a thread has opened with its own store. A full table closes one that no
    /// boot uses: it is opened again when it is wanted.
    pub fn take(
        table: *VersionTable,
        boots: *core.boot.Table,
        opened: Version,
    ) error{Full}!void {
        assert(table.find(opened.id) == null);
        var version = table.own(opened);
        table.add(version) catch {
            if (!table.giveUpOne(boots)) {
                version.close();
                return error.Full;
            }
            table.add(version) catch unreachable;
        };
    }

    /// Takes a version that was opened once more, since its manifest was replaced: nothing keeps
    /// its former places then. What a boot uses stays as it is.
    pub fn replace(table: *VersionTable, boots: *core.boot.Table, opened: Version) void {
        var version = opened;
        const known = table.find(opened.id).?;
        if (isUsed(boots, opened.id) or known.layer_above != null or version.layer_above != null)
            return version.close();
        known.close();
        known.* = table.own(opened);
    }

    /// Returns the version with the loop's store instead of that of the thread.
    fn own(table: *VersionTable, opened: Version) Version {
        var version = opened;
        switch (version.disk) {
            .file => {},
            .version => |*stored| {
                stored.store = table.store.?;
                stored.reader.reading = table.store.?.reading();
            },
        }
        return version;
    }

    /// Returns the version after a place that would be read at other places if it were opened
    /// again, and that no boot uses.
    pub fn nextUnused(
        table: *VersionTable,
        boots: *core.boot.Table,
        after: *usize,
    ) ?base.Uuid {
        while (after.* < table.versions.len) {
            const place = &table.versions[after.*];
            after.* += 1;
            const version = if (place.*) |*value| value else continue;
            if (version.disk == .file or version.layer_above != null) continue;
            if (!isUsed(boots, version.id)) return version.id;
        }
        return null;
    }

    fn giveUpOne(table: *VersionTable, boots: *core.boot.Table) bool {
        for (0..@min(given_up_tries_max, table.versions.len)) |_| {
            const place = &table.versions[table.next_given_up];
            table.next_given_up += 1;
            if (table.next_given_up == table.versions.len) table.next_given_up = 0;
            const version = if (place.*) |*value| value else continue;
            if (isUsed(boots, version.id)) continue;
            version.close();
            place.* = null;
            return true;
        }
        return false;
    }

    /// Counts the free places.
    pub fn freeCount(table: *const VersionTable) usize {
        var count: usize = 0;
        for (table.versions) |*place| count += @intFromBool(place.* == null);
        return count;
    }

    /// Closes what neither a boot nor the desired state uses, and what has been sealed in the
    /// meantime: its disk is a different one now.
    pub fn closeUnused(
        table: *VersionTable,
        boots: *core.boot.Table,
        state: *const core.uplink.desired_state.DesiredState,
    ) void {
        for (table.versions) |*place| {
            const version = if (place.*) |*value| value else continue;
            const described = describedVersion(state, version.id);
            const is_sealed = version.layer_above != null and described != null and
                described.?.layerAboveVersionId == null;
            if (!is_sealed and (described != null or isUsed(boots, version.id))) continue;
            version.close();
            place.* = null;
        }
    }

    fn isUsed(boots: *core.boot.Table, id: base.Uuid) bool {
        var iterator = boots.iterate();
        while (iterator.next()) |boot| if (boot.assignment.version_id.eql(id)) return true;
        return false;
    }
};

const describedVersion = core.boot.assignment.describedVersion;

fn openVersion(
    from: ?*store.Store,
    store_fd: i32,
    described: *const core.uplink.desired_state.Version,
    problem: *Problem,
) error{Problem}!Version {
    if (described.manifest) |*manifest| {
        var version =
            openStored(from, store_fd, described.id, manifest, problem) catch |err| return err;
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

/// Opens what the desired state describes. `below`: the description of the version that
/// `layerAboveVersionId` names.
pub fn openDescribed(
    from: ?*store.Store,
    store_fd: i32,
    described: *const core.uplink.desired_state.Version,
    below: ?*const core.uplink.desired_state.Version,
    problem: *Problem,
) error{Problem}!Version {
    if (described.layerAboveVersionId == null)
        return openVersion(from, store_fd, described, problem);
    return openBelow(from, store_fd, described, below, problem);
}

/// Opens the version below one in maintenance, with the boot files of that version.
fn openBelow(
    from: ?*store.Store,
    store_fd: i32,
    described: *const core.uplink.desired_state.Version,
    below: ?*const core.uplink.desired_state.Version,
    problem: *Problem,
) error{Problem}!Version {
    const known = below orelse return missingBelow(problem);
    const manifest = if (known.manifest) |*manifest| manifest else return missingBelow(problem);
    var version = try openStored(from, store_fd, known.id, manifest, problem);
    errdefer version.close();
    try checkSize(&version, described, problem);
    version.id = described.id;
    version.layer_above = known.id;
    version.setCommandLine(described.commandLine);
    return version;
}

fn missingBelow(problem: *Problem) error{Problem} {
    problem.* = .nothing_below;
    return error.Problem;
}

fn checkSize(
    version: *const Version,
    described: *const core.uplink.desired_state.Version,
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

/// Opens a version of the store with all boot files that its manifest names.
pub fn openStored(
    from: ?*store.Store,
    store_fd: i32,
    id: base.Uuid,
    expected: ?*const core.uplink.desired_state.Manifest,
    problem: *Problem,
) error{Problem}!Version {
    const opened = (if (from) |known| stored_version.open(
        known,
        store_fd,
        id,
        expected,
    ) else error.NoStore) catch |err| {
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

/// What a thread and the loop do one after the other.
fn openInto(
    table: *VersionTable,
    boots: *core.boot.Table,
    store_fd: i32,
    described: *const core.uplink.desired_state.Version,
    below: ?*const core.uplink.desired_state.Version,
) ?Problem {
    if (table.find(described.id) != null) return null;
    var problem: Problem = undefined;
    const version = openDescribed(table.store, store_fd, described, below, &problem) catch
        return problem;
    table.take(boots, version) catch return .full;
    return null;
}

test "a version of the desired state is opened with all its files or not at all" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    try tmp.dir.writeFile(testing.io, .{ .sub_path = "disk", .data = &@as([1024]u8, @splat(1)) });
    const kernel = &wire.kernel_image.test_x86;
    try tmp.dir.writeFile(testing.io, .{ .sub_path = "kernel", .data = kernel });
    try tmp.dir.writeFile(testing.io, .{ .sub_path = "cut", .data = kernel[0..600] });
    var table: VersionTable = try .init(testing.allocator, 1);
    defer table.deinit(testing.allocator);
    var boots: core.boot.Table = try .init(testing.allocator, .{ .capacity = 1 });
    defer boots.deinit(testing.allocator);
    var described: core.uplink.desired_state.Version = .{
        .id = .fromRandom(@splat(1)),
        .number = 1,
        .sizeBytes = 1024,
        .diskPath = "disk",
        .kernelPath = "absent",
        .commandLine = "quiet",
    };
    const fd = tmp.dir.handle;
    const missing = openInto(&table, &boots, fd, &described, null).?;
    try testing.expectEqual(error.Missing, missing.file.why);
    described.kernelPath = "kernel";
    described.sizeBytes = 2048;
    try testing.expectEqual(1024, openInto(&table, &boots, fd, &described, null).?.size.have);
    described.sizeBytes = 1024;
    described.kernelPath = "cut";
    const problem = openInto(&table, &boots, fd, &described, null).?;
    try testing.expectEqual(error.CutShort, problem.kernel.why);
    var text: [64]u8 = undefined;
    try testing.expectEqualStrings(
        "cut is a kernel that was cut short",
        try std.mem.print(&text, "{f}", .{problem}),
    );
    described.kernelPath = "kernel";
    try testing.expectEqual(null, openInto(&table, &boots, fd, &described, null));
    try testing.expectEqual(null, openInto(&table, &boots, fd, &described, null));
    try testing.expectEqualStrings("quiet", table.find(described.id).?.commandLine());
    const first = described.id;
    const identity: core.boot.Identity = .{ .id = .fromRandom(@splat(6)), .mac = .{
        .bytes = .{ 2, 0, 0, 0, 0, 1 },
    }, .handle = 1, .token = @splat(1) };
    const ref = try boots.insert(.init(identity, .{ .version_id = first }, 0, 0), 0);
    described.id = .fromRandom(@splat(2));
    try testing.expectEqual(Problem.full, openInto(&table, &boots, fd, &described, null).?);
    // What nobody boots makes room.
    boots.remove(ref);
    try testing.expectEqual(null, openInto(&table, &boots, fd, &described, null));
    try testing.expectEqual(null, table.find(first));
}

test "a version in maintenance is opened as the version below it, and again once it is sealed" {
    var tmp = testing.tmpDir(.{ .iterate = true });
    defer tmp.cleanup();
    var on: store.LinuxFiles = .fromFd(tmp.dir.handle);
    try store.Store.make(on.files(), .{ .id = .fromRandom(@splat(1)), .seed = @splat(5) });
    var from: store.Store = try .open(testing.allocator, on.files(), .{ .cache_nodes = 16 });
    defer from.close(testing.allocator);
    const parent_id: base.Uuid, const id: base.Uuid =
        .{ .fromRandom(@splat(2)), .fromRandom(@splat(3)) };
    var change = try from.lockForChange();
    for ([_]base.Uuid{ parent_id, id }) |version_id| try change.commit(&.{
        .store = from.id,
        .organization = .zero,
        .vdisk = .fromRandom(@splat(4)),
        .version = version_id,
        .parent = .zero,
        .number = 1,
        .incarnation = 0,
        .counter = 1,
        .created_unix_ms = 0,
        .disk_size = 1 << 20,
        .root = .zeros,
    });
    change.end();
    const manifest: core.uplink.desired_state.Manifest =
        .{ .root = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", .counter = 1 };
    const parent: core.uplink.desired_state.Version =
        .{
            .id = parent_id,
            .number = 1,
            .sizeBytes = 1 << 20,
            .diskPath = "",
            .commandLine = "old",
            .manifest = manifest,
        };
    var described = parent;
    described.id = id;
    described.manifest = null;
    described.layerAboveVersionId = parent_id;
    described.commandLine = "new";
    var table: VersionTable = try .init(testing.allocator, 1);
    defer table.deinit(testing.allocator);
    var boots: core.boot.Table = try .init(testing.allocator, .{ .capacity = 1 });
    defer boots.deinit(testing.allocator);
    table.store = &from;
    const fd = tmp.dir.handle;
    const alone = openInto(&table, &boots, fd, &described, null).?;
    try testing.expectEqual(Problem.nothing_below, alone);
    try testing.expectEqual(null, openInto(&table, &boots, fd, &described, &parent));
    const written = table.find(id).?;
    try testing.expect(written.layer_above.?.eql(parent_id));
    try testing.expect(written.disk.version.manifest.version.eql(parent_id));
    try testing.expectEqualStrings("new", written.commandLine());
    // A boot uses it; once sealed, it is a different disk all the same.
    const identity: core.boot.Identity = .{ .id = .fromRandom(@splat(6)), .mac = .{
        .bytes = .{ 2, 0, 0, 0, 0, 1 },
    }, .handle = 1, .token = @splat(1) };
    _ = try boots.insert(.init(identity, .{ .version_id = id, .writes = true }, 0, 0), 0);
    var versions = [_]core.uplink.desired_state.Version{ parent, described };
    const vdisks = [_]core.uplink.desired_state.Vdisk{
        .{ .id = .fromRandom(@splat(4)), .name = "d", .versions = &versions },
    };
    var state: core.uplink.desired_state.DesiredState = .{
        .edgeId = .zero,
        .organizationId = .zero,
        .siteId = .zero,
        .siteName = "",
        .incarnation = 1,
        .counter = 1,
        .unknownDevices = .ignore,
        .vdisks = &vdisks,
        .devices = &.{},
        .powerOns = &.{},
    };
    table.closeUnused(&boots, &state);
    try testing.expect(table.find(id) != null);
    versions[1].manifest = manifest;
    versions[1].layerAboveVersionId = null;
    table.closeUnused(&boots, &state);
    try testing.expectEqual(null, table.find(id));
    try testing.expectEqual(null, openInto(&table, &boots, fd, &versions[1], null));
    try testing.expectEqual(null, table.find(id).?.layer_above);
}
