//! `bootfarm-edge boot-media build`: writes the image of a boot medium from the system's iPXE and
//! ISOLINUX, and prints what it used. Running it again is safe; the same input gives the same
//! bytes.

const std = @import("std");
const Io = std.Io;
const Allocator = std.mem.Allocator;
const base = @import("base");
const media = @import("media");
const Terminal = @import("terminal.zig").Terminal;
const ipxe_script = media.ipxe_script;
const SystemFiles = media.system_files.SystemFiles;

const file_size_max = 16 << 20;
const line_size_max = 4096;
const http_port_default = 6980;
const uefi_starter = @embedFile("boot_media_uefi");

const Options = struct {
    edges: base.BoundedArray(base.Endpoint, ipxe_script.edges_max) = .empty,
    out: []const u8 = "",
    ipxe: ?[]const u8 = null,
    syslinux: ?[]const u8 = null,
    address: ?ipxe_script.FixedAddress = null,
};

/// `Explained`: the reason has already been printed.
const Failure = error{ Explained, OutOfMemory };

const Command = struct {
    io: Io,
    arena: Allocator,
    terminal: *Terminal,

    fn fail(command: *const Command, comptime format: []const u8, arguments: anytype) Failure {
        _ = command.terminal.fail(format, arguments);
        return error.Explained;
    }

    /// Prints a line about the progress; one that does not fit is left out.
    fn print(command: *const Command, comptime format: []const u8, arguments: anytype) void {
        var buffer: [line_size_max]u8 = undefined;
        command.terminal.out(std.mem.print(&buffer, format ++ "\n", arguments) catch return);
    }
};

/// `arguments` follow `boot-media` on the command line. Returns the exit code.
pub fn run(init: std.process.Init, arguments: []const [:0]const u8, terminal: *Terminal) u8 {
    var arena: std.heap.ArenaAllocator = .init(std.heap.smp_allocator);
    defer arena.deinit();
    const command: Command = .{ .io = init.io, .arena = arena.allocator(), .terminal = terminal };
    if (arguments.len == 0 or !std.mem.eql(u8, arguments[0], "build"))
        return terminal.fail(
            "Name a boot-media command: build; see bootfarm-edge boot-media --help.",
            .{},
        );
    const options = parse(&command, arguments[1..]) catch return 1;
    build(&command, &options) catch |reason| return switch (reason) {
        error.Explained => 1,
        error.OutOfMemory => terminal.fail("There is not enough memory.", .{}),
    };
    return 0;
}

fn parse(command: *const Command, arguments: []const [:0]const u8) Failure!Options {
    var options: Options = .{};
    var index: usize = 0;
    while (index < arguments.len) : (index += 2) {
        const name = arguments[index];
        if (index + 1 == arguments.len) return command.fail("{s} needs a value", .{name});
        const value = arguments[index + 1];
        if (std.mem.eql(u8, name, "--out")) options.out = value //
        else if (std.mem.eql(u8, name, "--ipxe")) options.ipxe = value //
        else if (std.mem.eql(u8, name, "--syslinux")) options.syslinux = value //
        else if (std.mem.eql(u8, name, "--address"))
            options.address = try parseAddress(command, value)
        else if (std.mem.eql(u8, name, "--edge")) {
            options.edges.append(try parseEdge(command, value)) catch
                return command.fail("at most {d} edges can be named", .{ipxe_script.edges_max});
        } else return command.fail(
            "boot-media build has no option {s}; see bootfarm-edge boot-media build --help",
            .{name},
        );
    }
    if (options.edges.constSlice().len == 0)
        return command.fail("--edge is missing: IP or IP:PORT of an edge", .{});
    if (options.out.len == 0)
        return command.fail("--out is missing: where to write the image", .{});
    return options;
}

fn parseEdge(command: *const Command, text: []const u8) Failure!base.Endpoint {
    const edge: base.Endpoint = base.Endpoint.parse(text) catch .{
        .ip = base.Ip4.parse(text) catch return command.fail(
            "--edge {s} is neither an IPv4 address nor IP:PORT (the edge's HTTP port)",
            .{text},
        ),
        .port = http_port_default,
    };
    if (!edge.ip.isUnicast())
        return command.fail("--edge {s} is not the address of a machine", .{text});
    return edge;
}

fn parseAddress(command: *const Command, text: []const u8) Failure!?ipxe_script.FixedAddress {
    if (std.mem.eql(u8, text, "dhcp")) return null;
    const wrong = "--address {s} is neither dhcp nor IP/PREFIX,GATEWAY (10.0.0.20/24,10.0.0.1)";
    const network, const gateway_text = std.mem.cutScalar(u8, text, ',') orelse
        return command.fail(wrong, .{text});
    const ip_text, const prefix_text = std.mem.cutScalar(u8, network, '/') orelse
        return command.fail(wrong, .{text});
    const ip = base.Ip4.parse(ip_text) catch return command.fail(wrong, .{text});
    const gateway = base.Ip4.parse(gateway_text) catch return command.fail(wrong, .{text});
    const prefix = std.fmt.parseInt(u6, prefix_text, 10) catch return command.fail(wrong, .{text});
    if (prefix < 1 or prefix > 30)
        return command.fail("--address {s}: the prefix is a number from 1 to 30", .{text});
    const host_bits: u5 = @intCast(32 - @as(u8, prefix));
    if (ip.toInt() >> host_bits != gateway.toInt() >> host_bits)
        return command.fail("--address {s}: the gateway is not in the address's network", .{text});
    if (!ip.isUnicast() or ip.eql(gateway))
        return command.fail("--address {s}: {f} is not an address for a device", .{ text, ip });
    return .{ .ip = ip, .prefix = prefix, .gateway = gateway };
}

fn build(command: *const Command, options: *const Options) Failure!void {
    const edges = options.edges.constSlice();
    var files: SystemFiles = undefined;
    inline for (media.system_files.requirements) |wanted|
        @field(files, wanted.field) = try readFile(command, options, &wanted);
    var buffer: [ipxe_script.size_max]u8 = undefined;
    const image = media.image.build(command.arena, .{
        .files = files,
        .uefi_starter = uefi_starter,
        .script = ipxe_script.write(.{ .edges = edges, .address = options.address }, &buffer),
    }) catch |reason| switch (reason) {
        error.OutOfMemory => return error.OutOfMemory,
        error.FilesTooLarge => return command.fail("ipxe.efi is larger than 30 MiB", .{}),
    };
    try writeImage(command, options.out, image);
    for (edges, 1..) |edge, number| command.print("  edge {d}: {f}", .{ number, edge });
    if (options.address) |address|
        command.print("  address {f}, for one device only", .{address.ip})
    else
        command.print("  address by the network's DHCP server", .{});
    command.print("wrote {s}: {d} MiB, for discs and USB sticks, BIOS and 64-bit UEFI", .{
        options.out, image.len >> 20,
    });
}

fn readFile(
    command: *const Command,
    options: *const Options,
    wanted: *const media.system_files.Requirement,
) Failure![]const u8 {
    const given = if (wanted.is_ipxe) options.ipxe else options.syslinux;
    const option = if (wanted.is_ipxe) "--ipxe" else "--syslinux";
    const folders: []const []const u8 = if (given) |folder| &.{folder} else wanted.folders;
    for (folders) |folder| {
        const path = try std.fs.path.join(command.arena, &.{ folder, wanted.name });
        const limit: Io.Limit = .limited(file_size_max);
        const bytes = Io.Dir.cwd().readFileAlloc(command.io, path, command.arena, limit) catch
            continue;
        if (!wanted.is_it(bytes)) return command.fail("{s} is not {s}; see the package {s}", .{
            path, wanted.description, wanted.package,
        });
        command.print("  {s}, {d} KiB", .{ path, bytes.len >> 10 });
        return bytes;
    }
    return command.fail(
        "{s} is not in {s}: install the Debian package {s}, or name a folder with {s}",
        .{ wanted.name, folders[0], wanted.package, option },
    );
}

/// Writes the whole image under its name, or nothing.
fn writeImage(command: *const Command, path: []const u8, image: []const u8) Failure!void {
    const cannot = "{s} cannot be written: {s}";
    const folder = Io.Dir.cwd();
    var atomic = folder.createFileAtomic(command.io, path, .{ .replace = true }) catch |reason|
        return command.fail(cannot, .{ path, @errorName(reason) });
    defer atomic.deinit(command.io);
    atomic.file.writePositionalAll(command.io, image, 0) catch |reason|
        return command.fail(cannot, .{ path, @errorName(reason) });
    atomic.file.setPermissions(command.io, .fromMode(0o644)) catch {};
    atomic.file.sync(command.io) catch |reason|
        return command.fail(cannot, .{ path, @errorName(reason) });
    atomic.replace(command.io) catch |reason|
        return command.fail(cannot, .{ path, @errorName(reason) });
}
