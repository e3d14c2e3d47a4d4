//! The command line of `bootfarm-edge enrol`.

const std = @import("std");
const core = @import("core");
const options_module = @import("options.zig");

const Complaint = options_module.Complaint;
const token_size_max = core.uplink.message.join_token_size_max;

pub const Enrol = struct {
    url: []const u8,
    /// Null if the data directory already has an identity.
    token: ?[]const u8,
    data: []const u8,
    /// Gives up an identity that the control plane no longer accepts, for a new one.
    rejoin: bool,
};

const Option = enum { @"--url", @"--token", @"--token-file", @"--data", @"--rejoin" };

pub fn parse(
    arena: std.mem.Allocator,
    io: std.Io,
    rest: []const [:0]const u8,
    complaint: *Complaint,
) (options_module.Error || error{OutOfMemory})!Enrol {
    var arguments: options_module.Arguments =
        .{ .command = "enrol", .rest = rest, .complaint = complaint };
    var url: ?[]const u8 = null;
    var token: ?[]const u8 = null;
    var data: ?[]const u8 = null;
    var rejoin = false;
    while (try arguments.next()) |argument| {
        const option = std.meta.stringToEnum(Option, argument.name) orelse
            return arguments.noOption(argument.name);
        if (option == .@"--rejoin") {
            rejoin = true;
            continue;
        }
        const text = try arguments.value(argument.name, argument.value);
        switch (option) {
            .@"--url" => url = std.mem.trimEnd(u8, text, "/"),
            .@"--token" => token = text,
            .@"--token-file" => token = try readToken(arena, io, text, complaint),
            .@"--data" => data = text,
            .@"--rejoin" => unreachable,
        }
    }
    const enrol: Enrol = .{
        .url = url orelse return complaint.set("enrol needs --url URL of the control plane.", .{}),
        .token = token orelse if (rejoin) null else return complaint.set(
            "enrol needs --token-file FILE with the join token of this edge's site, or --token T.",
            .{},
        ),
        .data = data orelse
            return complaint.set("enrol needs --data DIR, where this edge keeps its state.", .{}),
        .rejoin = rejoin,
    };
    const is_http = std.mem.startsWith(u8, enrol.url, "http://") or
        std.mem.startsWith(u8, enrol.url, "https://");
    if (!is_http)
        return complaint.set(
            "--url must begin with http:// or https://, and '{s}' does not.",
            .{enrol.url},
        );
    if (enrol.token) |text| if (text.len == 0 or text.len > token_size_max)
        return complaint.set("This is not a join token.", .{});
    return enrol;
}

/// Reads the token from a file: every user of this machine can see the command line.
fn readToken(
    arena: std.mem.Allocator,
    io: std.Io,
    path: []const u8,
    complaint: *Complaint,
) (options_module.Error || error{OutOfMemory})![]const u8 {
    const text =
        std.Io.Dir.cwd().readFileAlloc(io, path, arena, .limited(token_size_max + 2)) catch |err|
            return switch (err) {
                error.OutOfMemory => error.OutOfMemory,
                error.StreamTooLong => complaint.set("{s} does not contain a join token.", .{path}),
                else => complaint.set("--token-file {s} cannot be read.", .{path}),
            };
    return std.mem.trim(u8, text, " \r\n");
}
