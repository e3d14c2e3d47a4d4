//! `bootfarm-edge vdisk profile show|clear`: shows or clears what the boots of a version read
//! (docs/reference/boot-profile.md).

const std = @import("std");
const base = @import("base");
const core = @import("core");
const host = @import("host");
const store_module = @import("store");
const Call = @import("subcommand.zig");
const output = @import("output.zig");
const Uuid = base.Uuid;

const BootProfile = core.profile.BootProfile;
const profile_files = @import("agent").profile_files;

pub const Options = struct {
    positional: ?[]const u8 = null,
    version: ?Uuid = null,
    all: bool = false,
};

pub fn run(call: *const Call, options: *const Options) Call.Error!u8 {
    const Verb = enum { show, clear };
    const verb = std.meta.stringToEnum(Verb, options.positional orelse "") orelse
        return call.fail("vdisk profile is followed by show or clear.", .{});
    return switch (verb) {
        .show => show(call, options),
        .clear => clear(call, options),
    };
}

fn show(call: *const Call, options: *const Options) Call.Error!u8 {
    const gpa = call.gpa;
    const profile = try gpa.create(BootProfile);
    defer gpa.destroy(profile);
    const buffer = try gpa.create([BootProfile.file_size_max]u8);
    defer gpa.destroy(buffer);
    var text: std.Io.Writer.Allocating = .init(gpa);
    defer text.deinit();
    if (!call.is_json) text.writer.print(
        "{s:<38}{s:>6}  {s:>10}  {s:>7}  {s}\n",
        .{ "version", "boots", "read ahead", "extents", "hardware" },
    ) catch
        return error.OutOfMemory;
    var iterator: profile_files.Iterator = .init(call.files(), options.version);
    while (iterator.next()) |found| {
        if (options.version) |id| if (!found.version.eql(id)) break;
        const class = profile_files.read(call.files(), found, profile, buffer) catch |err| {
            if (err == error.NotFound) continue;
            var name: profile_files.Name = undefined;
            host.log.info("The boot profile {s} {s}.", .{
                profile_files.nameOf(found.version, found.key, &name),
                profile_files.sentence(err),
            });
            continue;
        };
        // The remainder of a cleared profile.
        if (profile.count == 0) continue;
        write(&text.writer, call.is_json, found.version, &class, profile) catch
            return error.OutOfMemory;
    }
    call.terminal.out(text.written());
    return 0;
}

fn write(
    writer: *std.Io.Writer,
    is_json: bool,
    version: Uuid,
    class: *const BootProfile.Class,
    profile: *const BootProfile,
) std.Io.Writer.Error!void {
    const from: ?Uuid = if (profile.carried_from.eql(.zero)) null else profile.carried_from;
    if (is_json) {
        std.json.Stringify.value(.{
            .version = version,
            .hardware = class.name,
            .boots = profile.boots,
            .readAheadBytes = profile.handedBytes(),
            .extents = profile.count,
            .carriedFrom = from,
        }, .{}, writer) catch return error.WriteFailed;
        return writer.writeByte('\n');
    }
    var buffer: [32]u8 = undefined;
    const size = std.mem.print(&buffer, "{f}", .{
        output.Size{ .bytes = profile.handedBytes() },
    }) catch unreachable;
    try writer.print("{f}  {d:>6}  {s:>10}  {d:>7}  {f}", .{
        version, profile.boots, size, profile.count, class.name,
    });
    if (from) |parent| try writer.print(", started from that of {f}", .{parent});
    try writer.writeByte('\n');
}

fn clear(call: *const Call, options: *const Options) Call.Error!u8 {
    if (options.version == null and !options.all)
        return call.fail("vdisk profile clear needs --version ID, or --all.", .{});
    const profile = try call.gpa.create(BootProfile);
    defer call.gpa.destroy(profile);
    const buffer = try call.gpa.create([BootProfile.file_size_max]u8);
    defer call.gpa.destroy(buffer);
    const count = profile_files.clear(
        call.files(),
        options.version,
        profile,
        buffer,
        host.sys.random,
    ) catch |err|
        return call.fail("Boot profiles cannot be cleared: a file {s}.", .{
            store_module.files.sentence(err),
        });
    call.print(
        .{ .cleared = count },
        "cleared {d} boot profiles; a running edge drops them within a second",
        .{count},
    );
    return 0;
}
