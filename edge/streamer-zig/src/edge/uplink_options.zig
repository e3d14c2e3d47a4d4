//! The options with which `enrol`, `serve` and `doctor` reach a control plane.

const std = @import("std");
const core = @import("core");
const host = @import("host");
const Complaint = @import("complaint.zig");

pub const UplinkOptions = @This();

/// Accepts an `http://` URL to another machine.
insecure: bool = false,
ca_file: ?[]const u8 = null,
/// Null: as the environment says.
proxy: ?[]const u8 = null,

pub const Error = Complaint.Error || error{OutOfMemory};

/// Returns how to reach the control plane at this URL, or complains about what would not work. The
/// result lives in the process's arena.
pub fn settings(
    options: *const UplinkOptions,
    init: std.process.Init,
    url_text: []const u8,
    complaint: *Complaint,
) Error!host.Transport.Settings {
    const arena = init.arena.allocator();
    const url: core.uplink.ControlUrl = try parseUrl(try arena.dupe(u8, url_text), complaint);
    if (url.isExposed() and !options.insecure) return complaint.set(
        "{s} is not encrypted: anybody on the path reads the join token and what is exchanged. Use an https:// URL (of an enrolled edge: bootfarm-edge enrol --rejoin --url https://HOST --data DIR), or accept the risk with --insecure-uplink.",
        .{url_text},
    );
    if (options.ca_file) |path| try checkAuthorities(init.io, path, complaint);
    return .{
        .url = url,
        .proxy = try options.proxyFor(init, &url, complaint),
        .ca_file = options.ca_file,
    };
}

fn parseUrl(text: []const u8, complaint: *Complaint) Complaint.Error!core.uplink.ControlUrl {
    return core.uplink.ControlUrl.parse(text) catch |err| switch (err) {
        error.UnknownScheme => complaint.set(
            "The control plane's URL must begin with http:// or https://, and '{s}' does not.",
            .{text},
        ),
        error.InvalidHost => complaint.set(
            "The control plane's URL names a host or an IPv4 address, and '{s}' does not.",
            .{text},
        ),
        error.HasCredentials => complaint.set(
            "The control plane's URL takes no user and no password: edges sign their requests.",
            .{},
        ),
        error.HasQuery => complaint.set(
            "The control plane's URL ends with its host or a path, without ? and #, and '{s}' does not.",
            .{text},
        ),
    };
}

fn checkAuthorities(io: std.Io, path: []const u8, complaint: *Complaint) Error!void {
    const gpa = std.heap.smp_allocator;
    host.Transport.checkAuthorities(gpa, io, path) catch |err| return switch (err) {
        error.OutOfMemory => error.OutOfMemory,
        error.NotReadable, error.Canceled => complaint.set(
            "--ca-file {s} cannot be read.",
            .{path},
        ),
        error.NoCertificate => complaint.set(
            "--ca-file {s} has no certificate that can be used: it needs certificates of authorities in PEM (-----BEGIN CERTIFICATE-----) that have not expired.",
            .{path},
        ),
    };
}

fn proxyFor(
    options: *const UplinkOptions,
    init: std.process.Init,
    url: *const core.uplink.ControlUrl,
    complaint: *Complaint,
) Error!?core.uplink.Proxy {
    const environment: core.uplink.Proxy.Environment =
        .{ .context = init.environ_map, .get = variable };
    const text = options.proxy orelse
        core.uplink.Proxy.ofEnvironment(environment, url) orelse return null;
    const name = if (options.proxy == null) "The proxy of the environment" else "--proxy";
    return core.uplink.Proxy.parse(init.arena.allocator(), text) catch |err| return switch (err) {
        error.OutOfMemory => error.OutOfMemory,
        // Without the text: it may have a password.
        error.NotHttp => complaint.set(
            "{s} is the URL of an HTTP proxy, http://[USER:PASSWORD@]HOST:PORT; other kinds are not supported.",
            .{name},
        ),
        error.InvalidHost => complaint.set(
            "{s} is http://[USER:PASSWORD@]HOST:PORT, and names no valid host.",
            .{name},
        ),
        error.PasswordTooLong => complaint.set(
            "{s} has a user or a password of more than 255 bytes.",
            .{name},
        ),
    };
}

fn variable(context: *const anyopaque, name: []const u8) ?[]const u8 {
    const map: *const std.process.Environ.Map = @ptrCast(@alignCast(context));
    return map.get(name);
}
