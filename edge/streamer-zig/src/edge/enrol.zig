//! `bootfarm-edge enrol`: creates this edge's key and obtains an identity with the join token,
//! once. With `--rejoin` an existing identity is kept as long as the control plane accepts it; a
//! revoked one is given up with everything that belongs to it, and a new key obtains a new one.

const std = @import("std");
const builtin = @import("builtin");
const base = @import("base");
const core = @import("core");
const host = @import("host");
const options_module = @import("options.zig");
const start = @import("start.zig");
const Terminal = @import("terminal.zig").Terminal;
const UplinkOptions = @import("uplink_options.zig");

const Complaint = options_module.Complaint;
const Error = start.Error;
const Identity = host.data_dir.Identity;
const KeyPair = base.Ed25519.KeyPair;
const uplink_message = core.uplink.message;
const token_size_max = uplink_message.join_token_size_max;

/// What a revoked edge leaves behind. The store, boot programs and leases belong to the site and
/// stay.
const of_an_identity = [_][]const u8{
    "identity.json", "edge.key",      "seal.key",  "state.json",   "epoch",               "reports",
    "captures",      "boots.journal", "power-ons", "power-orders", host.update_root_name, "update-metadata",
    "reads",         "files-read",
};

pub fn run(init: std.process.Init, arguments: []const [:0]const u8, terminal: *Terminal) u8 {
    var complaint: Complaint = .{};
    const joined = enrol(init, arguments, &complaint) catch |err| switch (err) {
        error.Wrong => return terminal.fail("{s}", .{complaint.text()}),
        error.OutOfMemory => return terminal.fail("There is not enough memory.", .{}),
    };
    const word = if (joined.is_known) "is already" else "enrolled as";
    host.log.info("{s} edge {f} of site {s}", .{
        word, joined.identity.edgeId, joined.identity.siteName,
    });
    return 0;
}

const Enrol = struct {
    url: []const u8,
    /// Null if the data directory already has an identity.
    token: ?[]const u8,
    data: []const u8,
    /// Gives up an identity that the control plane no longer accepts, for a new one.
    rejoin: bool,
    uplink: UplinkOptions,
};

const Option = enum {
    @"--url",
    @"--token",
    @"--token-file",
    @"--data",
    @"--rejoin",
    @"--insecure-uplink",
    @"--ca-file",
    @"--proxy",
};

fn parse(
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
    var is_rejoin = false;
    var uplink: UplinkOptions = .{};
    while (try arguments.next()) |argument| {
        const option = std.meta.stringToEnum(Option, argument.name) orelse
            return arguments.noOption(argument.name);
        switch (option) {
            .@"--rejoin" => is_rejoin = true,
            .@"--insecure-uplink" => uplink.insecure = true,
            else => {},
        }
        if (option == .@"--rejoin" or option == .@"--insecure-uplink") continue;
        const text = try arguments.value(argument.name, argument.value);
        switch (option) {
            .@"--url" => url = std.mem.trimEnd(u8, text, "/"),
            .@"--token" => token = text,
            .@"--token-file" => token = try readToken(arena, io, text, complaint),
            .@"--data" => data = text,
            .@"--ca-file" => uplink.ca_file = text,
            .@"--proxy" => uplink.proxy = text,
            .@"--rejoin", .@"--insecure-uplink" => unreachable,
        }
    }
    const given: Enrol = .{
        .url = url orelse return complaint.set("enrol needs --url URL of the control plane.", .{}),
        .token = token orelse if (is_rejoin) null else return complaint.set(
            "enrol needs --token-file FILE with the join token of this edge's site, or --token T.",
            .{},
        ),
        .data = data orelse
            return complaint.set("enrol needs --data DIR, where this edge keeps its state.", .{}),
        .rejoin = is_rejoin,
        .uplink = uplink,
    };
    if (given.token) |text| if (text.len == 0 or text.len > token_size_max)
        return complaint.set("This is not a join token.", .{});
    return given;
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

const JoinResult = struct { identity: Identity, is_known: bool = false };

fn enrol(
    init: std.process.Init,
    arguments: []const [:0]const u8,
    complaint: *Complaint,
) Error!JoinResult {
    const arena = init.arena.allocator();
    const options = try parse(arena, init.io, arguments, complaint);
    var data = try start.openData(init.io, options.data, complaint);
    defer data.close();
    if (data.identity(arena)) |existing| {
        if (!options.rejoin) return complaint.set(
            "{s} already belongs to edge {f} of {s}; choose another --data.",
            .{ options.data, existing.edgeId, existing.url },
        );
        if (try rejoin(init, &options, &data, existing, complaint)) |joined| return joined;
    } else |err| switch (err) {
        error.Missing => {},
        error.NotReadable, error.Damaged => return complaint.set(
            "{s}/identity.json cannot be read; choose another --data.",
            .{options.data},
        ),
    }
    const answer = ask(
        init,
        &options,
        try ownKeys(&data, &options, complaint),
        complaint,
    ) catch |err| switch (err) {
        // The key was kept, but its edge was revoked: the token is unused.
        error.Revoked => blk: {
            forget(&data);
            break :blk ask(
                init,
                &options,
                try ownKeys(&data, &options, complaint),
                complaint,
            ) catch |again| switch (again) {
                error.Revoked => return complaint.set(
                    "The control plane has revoked this edge; create a new token.",
                    .{},
                ),
                else => |other| return other,
            };
        },
        else => |other| return other,
    };
    const site_name: base.UntrustedText = .init(answer.siteName);
    const identity: Identity = .{
        .edgeId = answer.edgeId,
        .organizationId = answer.organizationId,
        .siteId = answer.siteId,
        .siteName = try arena.dupe(u8, site_name.slice()),
        .url = options.url,
        .signingKeyId = answer.signingKey.id,
        .signingKey = answer.signingKey.publicKey,
    };
    try keep(&data, &options, identity, complaint);
    try pinRoot(init, &options, &data, identity, complaint);
    return .{ .identity = identity };
}

/// The key is kept when the answer is lost: the same token with the same key gets the same identity
/// again.
fn ownKeys(data: *const host.DataDir, options: *const Enrol, complaint: *Complaint) Error!OwnKeys {
    const seed = data.secret("edge.key") catch
        return complaint.set("{s}/edge.key cannot be read or written.", .{options.data});
    return .{
        .signing = KeyPair.generateDeterministic(seed) catch
            return complaint.set("{s}/edge.key is not a key; remove it.", .{options.data}),
        .sealing = data.secret("seal.key") catch
            return complaint.set("{s}/seal.key cannot be read or written.", .{options.data}),
    };
}

const OwnKeys = struct { signing: KeyPair, sealing: base.x25519.Key };

fn keep(
    data: *const host.DataDir,
    options: *const Enrol,
    identity: Identity,
    complaint: *Complaint,
) Error!void {
    data.writeIdentity(identity) catch
        return complaint.set("{s}/identity.json cannot be written.", .{options.data});
    // An edge that finds them starts on a full disk, too.
    for ([_][]const u8{ "store", "reports", "captures", "reads", "files-read" }) |name| {
        var dir = data.subDir(name) catch continue;
        dir.close(data.io);
    }
}

/// Returns the existing identity if the control plane accepts it, or null if it is given up.
fn rejoin(
    init: std.process.Init,
    options: *const Enrol,
    data: *const host.DataDir,
    existing: Identity,
    complaint: *Complaint,
) Error!?JoinResult {
    const arena = init.arena.allocator();
    const epoch_text = data.read(arena, "epoch") catch "0";
    var counter: std.atomic.Value(u64) = .init(0);
    var client: host.UplinkClient = .init(std.heap.smp_allocator, init.io, .{
        .transport = try options.uplink.settings(init, options.url, complaint),
        .key = (try ownKeys(data, options, complaint)).signing,
        .edge_id = existing.edgeId,
        .epoch = std.fmt.parseInt(u53, std.mem.trim(u8, epoch_text, " \n"), 10) catch 0,
        .counter = &counter,
    });
    defer client.deinit();
    // Higher than any state: there is no news, and the answer comes at once.
    const path = "/edge/v1/state?after=900719925474099.0&waitMs=0";
    const buffer = try arena.alloc(u8, uplink_message.body_size_max);
    const result = client.request(.GET, path, "", host.UplinkWorker.request_timeout_ms, buffer);
    switch (host.uplink_client.meaning(arena, result)) {
        .nothing, .later => return reportSilence(&client, result, options.url, complaint),
        .ok => {},
        .refused => |refused| switch (refused.code) {
            // The edge is known, and another copy of it has started since.
            .stale_epoch => {},
            .edge_revoked, .edge_unknown, .signature_invalid => {
                if (options.token == null) return complaint.set(
                    "The control plane at {s} no longer accepts edge {f} ({t}); create a join token and pass it with --token-file.",
                    .{ options.url, existing.edgeId, refused.code },
                );
                forget(data);
                return null;
            },
            else => return fail(refused.code, refused.status, options.url, complaint),
        },
    }
    var identity = existing;
    identity.url = options.url;
    if (!std.mem.eql(u8, existing.url, options.url)) try keep(data, options, identity, complaint);
    try pinRoot(init, options, data, identity, complaint);
    return .{ .identity = identity, .is_known = true };
}

/// Pins the root of the releases that this edge will take, as it pins the organization's key: what
/// it trusts from now on is what the control plane says once, while a person looks. A root that is
/// there stays.
fn pinRoot(
    init: std.process.Init,
    options: *const Enrol,
    data: *const host.DataDir,
    identity: Identity,
    complaint: *Complaint,
) Error!void {
    const arena = init.arena.allocator();
    if (data.read(arena, host.update_root_name)) |_| return else |_| {}
    const epoch_text = data.read(arena, "epoch") catch "0";
    var counter: std.atomic.Value(u64) = .init(0);
    var client: host.UplinkClient = .init(std.heap.smp_allocator, init.io, .{
        .transport = try options.uplink.settings(init, options.url, complaint),
        .key = (try ownKeys(data, options, complaint)).signing,
        .edge_id = identity.edgeId,
        .epoch = std.fmt.parseInt(u53, std.mem.trim(u8, epoch_text, " \n"), 10) catch 0,
        .counter = &counter,
    });
    defer client.deinit();
    const buffer = try arena.alloc(u8, core.update.Client.root_size_max);
    const path = "/edge/v1/update/metadata/1.root.json";
    const timeout_ms = host.UplinkWorker.request_timeout_ms;
    const answer = client.request(.GET, path, "", timeout_ms, buffer) catch return;
    // A control plane without releases: an edge of it is updated by hand.
    if (answer.status != 200) return;
    // Nor does one without a valid root keep an edge from serving.
    _ = core.update.Client.begin(arena, .{ .root = answer.body }, 0) catch return;
    data.write(host.update_root_name, answer.body) catch return complaint.set(
        "{s}/{s} cannot be written.",
        .{ options.data, host.update_root_name },
    );
}

/// Removes the identity first: what follows is useless without it.
fn forget(data: *const host.DataDir) void {
    for (of_an_identity) |name| data.dir.deleteTree(data.io, name) catch {};
}

fn ask(
    init: std.process.Init,
    options: *const Enrol,
    keys: OwnKeys,
    complaint: *Complaint,
) (Error || error{Revoked})!uplink_message.EnrolAnswer {
    const arena = init.arena.allocator();
    const token = options.token orelse return complaint.set(
        "{s} has no identity; create a join token and pass it with --token-file.",
        .{options.data},
    );
    var counter: std.atomic.Value(u64) = .init(0);
    var client: host.UplinkClient = .init(std.heap.smp_allocator, init.io, .{
        .transport = try options.uplink.settings(init, options.url, complaint),
        .key = keys.signing,
        .edge_id = null,
        .epoch = 0,
        .counter = &counter,
    });
    defer client.deinit();
    const body = try arena.create([uplink_message.body_size_max]u8);
    const text = uplink_message.encode(uplink_message.EnrolRequest{
        .joinToken = token,
        .publicKey = core.uplink.key_text.write(keys.signing.public_key.toBytes()),
        .sealKey = core.uplink.key_text.write(base.x25519.publicOf(&keys.sealing)),
        .agentVersion = base.version,
        .arch = comptime uplink_message.archName(builtin.cpu.arch).?,
        .hostname = hostName(),
    }, body);
    const buffer = try arena.alloc(u8, uplink_message.body_size_max);
    const result =
        client.request(.POST, "/edge/v1/enrol", text, host.UplinkWorker.request_timeout_ms, buffer);
    switch (host.uplink_client.meaning(arena, result)) {
        .ok => {},
        .nothing, .later => return reportSilence(&client, result, options.url, complaint),
        .refused => |refused| return if (refused.code == .edge_revoked and options.rejoin)
            error.Revoked
        else if (refused.status < 400)
            reportRedirect(result, options.url, complaint)
        else
            fail(refused.code, refused.status, options.url, complaint),
    }
    const answered = (result catch unreachable).body;
    const answer = uplink_message.parse(uplink_message.EnrolAnswer, arena, answered) catch
        return complaint.set("The server at {s} is not a Bootfarm control plane.", .{options.url});
    _ = core.uplink.key_text.parse(answer.signingKey.publicKey) catch
        return complaint.set(
            "The control plane at {s} sent an invalid signing key.",
            .{options.url},
        );
    return answer;
}

fn reportSilence(
    client: *const host.UplinkClient,
    result: host.uplink_client.RequestError!host.uplink_client.Answer,
    url: []const u8,
    complaint: *Complaint,
) error{Wrong} {
    const answer = result catch {
        const failure = client.failure();
        return complaint.set("The control plane at {s} cannot be reached: {s}. {s}", .{
            url, failure.sentence(), failure.remedy(),
        });
    };
    return complaint.set(
        "The control plane at {s} cannot answer now (HTTP status {d}); try again in a minute.",
        .{ url, answer.status },
    );
}

/// A redirect could lead away from TLS, or to another control plane.
fn reportRedirect(
    result: host.uplink_client.RequestError!host.uplink_client.Answer,
    url: []const u8,
    complaint: *Complaint,
) error{Wrong} {
    const answer = result catch unreachable;
    return complaint.set(
        "The server at {s} redirects to {f} (HTTP status {d}). Redirects are not followed: give the control plane's own URL with --url.",
        .{ url, answer.location, answer.status },
    );
}

fn fail(
    code: core.uplink.sender.Code,
    status: u16,
    url: []const u8,
    complaint: *Complaint,
) error{Wrong} {
    return switch (code) {
        .join_token_unknown => complaint.set(
            "The join token is wrong: the control plane at {s} does not know it.",
            .{url},
        ),
        .join_token_used => complaint.set(
            "The join token was already used by another edge; create a new one.",
            .{},
        ),
        .join_token_expired => complaint.set("The join token has expired; create a new one.", .{}),
        else => complaint.set("The control plane at {s} refused the enrolment: {t} ({d}).", .{
            url, code, status,
        }),
    };
}

fn hostName() base.UntrustedText {
    var name: std.os.linux.utsname = undefined;
    if (std.os.linux.errno(std.os.linux.uname(&name)) != .SUCCESS) return .init("unknown");
    return .init(std.mem.sliceTo(&name.nodename, 0));
}
