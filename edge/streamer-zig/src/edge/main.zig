//! `bootfarm-edge`: the site agent. Finds the command that the command line names and runs it; each
//! command has its own file, and its help in `help.zig`.

const std = @import("std");
const base = @import("base");
const host = @import("host");
const store = @import("store");
const help = @import("help.zig");
const serve = @import("serve.zig");
const enrol = @import("enrol.zig");
const doctor_command = @import("doctor/command.zig");
const image_command = @import("image_command.zig");
const initramfs_command = @import("initramfs/command.zig");
const boot_files_command = @import("boot_files_command.zig");
const boot_media_command = @import("boot_media_command.zig");
const leases_command = @import("leases_command.zig");
const listen_address_command = @import("listen_address_command.zig");
const rotate_key_command = @import("rotate_key_command.zig");
const trust_key_command = @import("trust_key_command.zig");
const vdisk_command = @import("vdisk/command.zig");
const release_command = @import("release_command.zig");
const Terminal = @import("terminal.zig").Terminal;

/// `arguments` are those after the command's name. Returns the exit code.
const Run =
    *const fn (init: std.process.Init, arguments: []const [:0]const u8, terminal: *Terminal) u8;

const commands = [_]struct { name: []const u8, run: Run }{
    .{ .name = "serve", .run = serve.run },
    .{ .name = "enrol", .run = enrol.run },
    .{ .name = "doctor", .run = doctor_command.run },
    .{ .name = "leases", .run = leases_command.run },
    .{ .name = "vdisk", .run = vdisk_command.run },
    .{ .name = "image", .run = image_command.run },
    .{ .name = "initramfs", .run = initramfs_command.run },
    .{ .name = "boot-files", .run = boot_files_command.run },
    .{ .name = "boot-media", .run = boot_media_command.run },
    .{ .name = "listen-address", .run = listen_address_command.run },
    .{ .name = "rotate-key", .run = rotate_key_command.run },
    .{ .name = "trust-key", .run = trust_key_command.run },
    .{ .name = "verify-release", .run = release_command.run },
    .{ .name = "version", .run = printVersion },
};

pub fn main(init: std.process.Init) !u8 {
    const all = try init.minimal.args.toSlice(init.arena.allocator());
    const arguments = all[@min(1, all.len)..];
    var terminal: Terminal = .{};
    if (help.find(arguments)) |text| {
        terminal.out(text);
        return 0;
    }
    if (arguments.len == 0) return terminal.fail("Name a command; see bootfarm-edge --help.", .{});
    const name = arguments[0];
    for (commands) |command|
        if (std.mem.eql(u8, command.name, name))
            return command.run(init, arguments[1..], &terminal);
    if (std.mem.eql(u8, name, "--version")) return printVersion(init, &.{}, &terminal);
    if (std.mem.eql(u8, name, host.TlsProcess.command) and arguments.len >= 2)
        return host.TlsProcess.run(
            std.heap.smp_allocator,
            init.io,
            arguments[1],
            if (arguments.len > 2) arguments[2] else null,
        );
    // For the release before this one, not for people: no help lists it.
    if (std.mem.eql(u8, name, host.FormerProgram.formats_command)) {
        terminal.out(std.fmt.comptimePrint("{d}\n", .{store.LayerHandover.format}));
        return 0;
    }
    // For the build and its tests, not for people: no help lists it.
    if (std.mem.eql(u8, name, "release-mark")) {
        terminal.out(base.release_mark);
        return 0;
    }
    return terminal.fail("There is no command '{s}'; see bootfarm-edge --help.", .{name});
}

fn printVersion(_: std.process.Init, _: []const [:0]const u8, terminal: *Terminal) u8 {
    terminal.out(base.version ++ "\n");
    return 0;
}

test "each command and each subcommand has a help" {
    for (commands) |command| try expectHelp(&.{command.name});
    for (vdisk_command.subcommands) |subcommand| try expectHelp(&.{ "vdisk", subcommand.name });
    for ([_][2][]const u8{
        .{ "image", "inspect" },
        .{ "image", "extract" },
        .{ "initramfs", "build" },
        .{ "boot-files", "import" },
        .{ "boot-files", "list" },
        .{ "boot-files", "remove" },
        .{ "boot-media", "build" },
    }) |words| try expectHelp(&words);
}

fn expectHelp(words: []const []const u8) !void {
    const name = try std.mem.join(std.testing.allocator, " ", words);
    defer std.testing.allocator.free(name);
    for (help.texts) |text| {
        if (std.mem.eql(u8, text.command, name)) return;
    }
    std.debug.print("bootfarm-edge {s} has no help\n", .{name});
    return error.NoHelp;
}

test {
    _ = @import("edge_test.zig");
    _ = @import("doctor/control_plane.zig");
    _ = @import("subnet_settings.zig");
    _ = @import("table_sizes.zig");
    _ = @import("trusted_networks.zig");
    _ = @import("dhcp_config_file.zig");
    _ = @import("vdisk/source/empty_disk.zig");
    _ = @import("vdisk/export_directory.zig");
    _ = help;
    _ = leases_command;
    _ = listen_address_command;
    _ = release_command;
    _ = vdisk_command;
}
