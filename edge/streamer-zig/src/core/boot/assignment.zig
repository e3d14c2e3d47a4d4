//! What a device is assigned to boot, as the desired state describes it. Pure.

const std = @import("std");
const base = @import("base");
const desired_state = @import("../uplink/desired_state.zig");
const LocalDisk = @import("../target/local_disk_order.zig");
const Tuning = @import("../target/tuning.zig");

/// The assignment of a boot, made at its start or chosen in its menu; it stays for this boot,
/// whatever the policy says later.
pub const Assignment = struct {
    version_id: base.Uuid,
    vdisk_id: ?base.Uuid = null,
    device_id: ?base.Uuid = null,
    /// False for a disk named on the command line: its made-up ids are not reported.
    managed: bool = false,
    /// This device writes the version, which is in maintenance.
    writes: bool = false,
    /// Writes go to the device's memory first, then to its local disk.
    local_disk: ?LocalDisk = null,
    loader_files: LoaderFiles = .{},
    /// The boot program set chosen for the device; empty: the edge's own.
    program_set: base.UntrustedText = .empty,
    image: PrivateImage = .none,
    tuning: Tuning = .{},
    /// The trial of an experiment whose settings `tuning` has; null: those of its collection.
    trial: ?base.Uuid = null,
};

/// What is known of a device's private image. The version of a boot whose image is not read yet is
/// the one that others get. A restarted edge reads again what was being read.
pub const PrivateImage = enum {
    none,
    own,
    reading,
    to_be_read,

    pub fn isKnown(image: PrivateImage) bool {
        return image == .none or image == .own;
    }
};

/// `start`: nothing but the request counts. A script asks for this file right before it starts the
/// kernel.
pub const LoaderFile = enum { script, kernel, initrd, other, start };

/// The files that end the loader phase once all of them are delivered; none: only the first disk
/// read ends it.
pub const LoaderFiles = packed struct(u8) {
    kernel: bool = false,
    initrd: bool = false,
    _: u6 = 0,

    pub fn with(files: LoaderFiles, file: LoaderFile) LoaderFiles {
        var result = files;
        switch (file) {
            .kernel => result.kernel = true,
            .initrd => result.initrd = true,
            .script, .other, .start => {},
        }
        return result;
    }

    pub fn contains(files: LoaderFiles, others: LoaderFiles) bool {
        return toInt(files) & toInt(others) == toInt(others);
    }

    pub fn toInt(files: LoaderFiles) u8 {
        return @bitCast(files);
    }
};

/// Returns null where the state does not describe the version, or describes it in an unusable form.
pub fn ofVersion(
    state: *const desired_state.DesiredState,
    version_id: base.Uuid,
    device: *const desired_state.Device,
) ?Assignment {
    for (state.vdisks) |*vdisk| {
        for (vdisk.versions) |*version| {
            if (!version.id.eql(version_id)) continue;
            var assignment = of(vdisk, version, device.id, programSetOf(state, device)) orelse
                return null;
            assignment.writes = writes(device, version_id);
            return assignment;
        }
    }
    return null;
}

/// Returns the assignment of a version that cannot be started; the device learns why when it
/// requests it.
pub fn ofMissing(
    state: *const desired_state.DesiredState,
    version_id: base.Uuid,
    device: *const desired_state.Device,
) Assignment {
    return .{
        .version_id = version_id,
        .device_id = device.id,
        .managed = true,
        .writes = writes(device, version_id),
        .program_set = .init(programSetOf(state, device) orelse ""),
    };
}

/// A device writes at most the version that it is assigned to, never another one that its menu
/// offers.
fn writes(device: *const desired_state.Device, version_id: base.Uuid) bool {
    return device.writes and device.versionId.eql(version_id);
}

fn programSetOf(
    state: *const desired_state.DesiredState,
    device: *const desired_state.Device,
) ?[]const u8 {
    return device.bootProgramSet orelse state.bootProgramSet;
}

/// Returns null if the command line cannot stand in a boot script.
pub fn of(
    vdisk: *const desired_state.Vdisk,
    version: *const desired_state.Version,
    device_id: ?base.Uuid,
    program_set: ?[]const u8,
) ?Assignment {
    if (!isCommandLine(version.commandLine)) return null;
    return .{
        .version_id = version.id,
        .vdisk_id = vdisk.id,
        .device_id = device_id,
        .managed = true,
        .program_set = .init(program_set orelse ""),
        .loader_files = loaderFilesOf(version),
    };
}

/// Returns the state's description of a version; null if it has none.
pub fn describedVersion(
    state: *const desired_state.DesiredState,
    id: base.Uuid,
) ?*const desired_state.Version {
    for (state.vdisks) |*vdisk| {
        for (vdisk.versions) |*version| if (version.id.eql(id)) return version;
    }
    return null;
}

pub fn loaderFilesOf(version: *const desired_state.Version) LoaderFiles {
    return .{
        .kernel = version.kernelPath != null,
        .initrd = version.kernelPath != null and version.initrdPath != null,
    };
}

/// Tells whether a command line can stand in a boot script: it must not be able to end its line or,
/// in iPXE's script, its command. iPXE expands `${...}` in the whole line, then splits it into
/// words, of which `||`, `&&` and `;` end a command and one that begins with `#` starts a comment
/// (src/core/exec.c of iPXE). It has no quoting for them.
pub fn isCommandLine(text: []const u8) bool {
    if (text.len > desired_state.command_line_size_max) return false;
    for (text) |byte| if (!std.ascii.isPrint(byte)) return false;
    if (std.mem.find(u8, text, "${") != null) return false;
    var words = std.mem.tokenizeScalar(u8, text, ' ');
    while (words.next()) |word| {
        if (word[0] == '#') return false;
        for ([_][]const u8{ "||", "&&", ";" }) |end| if (std.mem.eql(u8, word, end)) return false;
    }
    return true;
}

const testing = std.testing;

test "a command line cannot end the line or the command of the script that contains it" {
    for ([_][]const u8{
        "quiet",              "",              "root=/dev/nbd0p1 rw", "dyndbg=\"file a +p;file b +p\"",
        "a=$x b={y} c=d||e&", "x=#1 y=;z &&&",
    }) |text| try testing.expect(isCommandLine(text));
    for ([_][]const u8{
        "quiet\nshell",  "quiet\rshell", "quiet\tx", "quiet || shell", "|| shell", "quiet &&",
        "quiet ; shell", "quiet #",      "#c quiet", "a=${net0/mac}",  "$${x",     "caf\xc3\xa9",
    }) |text| try testing.expect(!isCommandLine(text));
    const long: [desired_state.command_line_size_max + 1]u8 = @splat('x');
    try testing.expect(isCommandLine(long[1..]));
    try testing.expect(!isCommandLine(&long));
}

fn testVersion(number: u8, kernel: ?[]const u8, initrd: ?[]const u8) desired_state.Version {
    return .{
        .id = .fromRandom(@splat(number)),
        .number = number,
        .sizeBytes = 512,
        .diskPath = "d",
        .kernelPath = kernel,
        .initrdPath = initrd,
        .commandLine = "quiet",
    };
}

test "a loader needs the kernel of a version, and its initrd only with one" {
    const cases = [_]struct { ?[]const u8, ?[]const u8, LoaderFiles }{
        .{ null, null, .{} },
        .{ "k", null, .{ .kernel = true } },
        .{ null, "i", .{} },
        .{ "k", "i", .{ .kernel = true, .initrd = true } },
    };
    for (cases) |case|
        try testing.expectEqual(case[2], loaderFilesOf(&testVersion(1, case[0], case[1])));
}

test "a version is found by its id in any disk, and one that cannot start is still the device's" {
    const versions =
        [_]desired_state.Version{ testVersion(1, null, null), testVersion(2, "k", null) };
    const vdisks = [_]desired_state.Vdisk{
        .{ .id = .fromRandom(@splat(30)), .name = "a", .versions = versions[0..1] },
        .{ .id = .fromRandom(@splat(31)), .name = "b", .versions = versions[1..] },
    };
    const state: desired_state.DesiredState = .{
        .edgeId = .fromRandom(@splat(20)),
        .organizationId = .fromRandom(@splat(21)),
        .siteId = .fromRandom(@splat(22)),
        .siteName = "",
        .incarnation = 1,
        .counter = 1,
        .unknownDevices = .ignore,
        .vdisks = &vdisks,
        .devices = &.{},
        .powerOns = &.{},
    };
    for (&versions) |*version|
        try testing.expectEqual(version, describedVersion(&state, version.id).?);
    const missing: base.Uuid = .fromRandom(@splat(3));
    try testing.expectEqual(null, describedVersion(&state, missing));
    const device: desired_state.Device = .{
        .id = .fromRandom(@splat(11)),
        .name = "a",
        .mac = .{ .bytes = .{ 2, 0xbf, 0, 0, 0, 1 } },
        .versionId = missing,
        .enabled = true,
        .writes = true,
        .bootProgramSet = "tested",
    };
    try testing.expectEqual(null, ofVersion(&state, missing, &device));
    try testing.expectEqualDeep(Assignment{
        .version_id = missing,
        .device_id = device.id,
        .managed = true,
        .writes = true,
        .program_set = .init("tested"),
    }, ofMissing(&state, missing, &device));
    const menu_choice = ofMissing(&state, versions[0].id, &device);
    try testing.expect(!menu_choice.writes);
}
