//! `bootfarm-edge`: the site agent. Each subcommand is a file of its own.

const std = @import("std");
const base = @import("base");
const help = @import("help.zig");
const serve = @import("serve.zig");
const enrol = @import("enrol.zig");
const doctor_command = @import("doctor/command.zig");
const image_command = @import("image_command.zig");
const initramfs_command = @import("initramfs_command.zig");
const boot_files_command = @import("boot_files_command.zig");
const boot_media_command = @import("boot_media_command.zig");
const leases_command = @import("leases_command.zig");
const listen_address_command = @import("listen_address_command.zig");
const rotate_key_command = @import("rotate_key_command.zig");
const trust_key_command = @import("trust_key_command.zig");
const vdisk_command = @import("vdisk/command.zig");
const release_command = @import("release_command.zig");
const Terminal = @import("terminal.zig").Terminal;

pub fn main(init: std.process.Init) !u8 {
    const arguments = try init.minimal.args.toSlice(init.arena.allocator());
    var terminal: Terminal = .{};
    const rest = arguments[@min(1, arguments.len)..];
    for (rest) |argument| if (std.mem.eql(
        u8,
        argument,
        "--help",
    ) or std.mem.eql(u8, argument, "-h")) {
        terminal.out(help.text);
        return 0;
    };
    if (rest.len == 0)
        return terminal.fail(
            "Say what to do: serve, enrol, doctor, vdisk, leases, initramfs, image, boot-media, boot-files or version; see bootfarm-edge --help.",
            .{},
        );
    const command = rest[0];
    if (std.mem.eql(u8, command, "serve")) return serve.run(init, rest[1..], &terminal);
    if (std.mem.eql(u8, command, "enrol")) return enrol.run(init, rest[1..], &terminal);
    if (std.mem.eql(u8, command, "doctor")) return doctor_command.run(init, rest[1..], &terminal);
    if (std.mem.eql(u8, command, "initramfs")) return initramfs_command.run(
        init,
        rest[1..],
        &terminal,
    );
    if (std.mem.eql(u8, command, "boot-media")) return boot_media_command.run(
        init,
        rest[1..],
        &terminal,
    );
    if (std.mem.eql(u8, command, "boot-files")) return boot_files_command.run(
        init,
        rest[1..],
        &terminal,
    );
    if (std.mem.eql(u8, command, "image")) return image_command.run(init, rest[1..], &terminal);
    if (std.mem.eql(u8, command, "vdisk"))
        return vdisk_command.run(init, rest[1..], &terminal);
    if (std.mem.eql(u8, command, "leases"))
        return leases_command.run(init, rest[1..], &terminal);
    if (std.mem.eql(u8, command, "verify-release"))
        return release_command.run(init, rest[1..], &terminal);
    if (std.mem.eql(u8, command, "rotate-key"))
        return rotate_key_command.run(init, rest[1..], &terminal);
    if (std.mem.eql(u8, command, "trust-key"))
        return trust_key_command.run(init, rest[1..], &terminal);
    if (std.mem.eql(u8, command, "listen-address")) return listen_address_command.run(&terminal);
    if (std.mem.eql(u8, command, "release-mark")) {
        terminal.out(base.release_mark);
        return 0;
    }
    if (std.mem.eql(u8, command, "version") or std.mem.eql(u8, command, "--version")) {
        terminal.out(base.version ++ "\n");
        return 0;
    }
    return terminal.fail(
        "There is no command '{s}': say serve, enrol, doctor, vdisk, leases, initramfs, image, boot-media, boot-files or version; " ++
            "see bootfarm-edge --help.",
        .{command},
    );
}

test {
    _ = @import("edge_test.zig");
    _ = @import("doctor/control_plane.zig");
    _ = @import("subnet_settings.zig");
    _ = @import("dhcp_config_file.zig");
    _ = leases_command;
    _ = listen_address_command;
    _ = release_command;
    _ = vdisk_command;
}
