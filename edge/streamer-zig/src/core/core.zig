//! Module `core`: pure state machines, one folder for each subject; ../../../docs/ARCHITECTURE.md
//! says what belongs here.

/// A boot as a state machine: events, phases, causes; all boots of an edge as a table; what is
/// reported of them.
pub const boot = struct {
    const machine = @import("boot/boot.zig");
    pub const Assignment = machine.Assignment;
    pub const Boot = machine.Boot;
    pub const DhcpClient = machine.DhcpClient;
    pub const DhcpMeaning = machine.DhcpMeaning;
    pub const DhcpMessage = machine.DhcpMessage;
    pub const DhcpRequest = machine.DhcpRequest;
    pub const Event = machine.Event;
    pub const Facts = machine.Facts;
    pub const Identity = machine.Identity;
    pub const LoaderFile = machine.LoaderFile;
    pub const LoaderFiles = machine.LoaderFiles;
    pub const LiveChanges = machine.LiveChanges;
    pub const Program = machine.Program;
    pub const client = @import("boot/client.zig");
    pub const Client = @import("boot/client.zig").BootClient;
    pub const Handle = @import("boot/handle.zig");
    pub const Path = @import("boot/handle.zig").BootPath;
    pub const phase = @import("boot/phase.zig");
    pub const BlockChains = @import("boot/block_chains.zig");
    pub const read_list = @import("boot/read_list.zig");
    pub const guest_trace = @import("boot/guest_trace.zig");
    pub const guest_units = @import("boot/guest_units.zig");
    pub const ReadLog = @import("boot/read_log.zig");
    pub const ReadTimes = @import("boot/read_times.zig");
    pub const packets = @import("boot/packets.zig");
    pub const Guest = @import("boot/guest.zig");
    pub const cause = @import("boot/cause.zig");
    pub const report = @import("boot/report.zig");
    pub const RouterWait = @import("boot/router_wait.zig");
    pub const assignment = @import("boot/assignment.zig");
    pub const policy = @import("boot/policy.zig");
    pub const Policy = @import("boot/policy.zig").BootPolicy;
    pub const release = @import("boot/release.zig");
    pub const CaptureStore = @import("boot/capture_store.zig");
    pub const Table = @import("boot/table.zig");
    pub const UnregisteredLimit = @import("boot/unregistered_limit.zig");
    pub const failover = @import("boot/failover.zig");
};
/// A simulated device, from power-on to ready.
pub const device = struct {
    pub const Device = @import("device/device.zig");
    pub const DhcpExchange = @import("device/dhcp_exchange.zig");
    pub const read_trace = @import("device/read_trace.zig");
};
/// DHCP and proxyDHCP: networks, leases, the answer to a packet (RFC 2131, PXE).
pub const dhcp = struct {
    pub const Leases = @import("dhcp/leases.zig");
    pub const Service = @import("dhcp/service.zig");
    pub const network = @import("dhcp/network.zig");
};
/// What boot loaders are given: iPXE scripts, GRUB and PXELINUX configurations, menus, the kernel
/// line.
pub const loader = struct {
    pub const menu = @import("loader/menu.zig");
    pub const Menu = @import("loader/menu.zig");
    pub const ipxe_menu = @import("loader/ipxe_menu.zig");
    pub const grub_config = @import("loader/grub_config.zig");
    pub const config_menu = @import("loader/config_menu.zig");
    pub const kernel_line = @import("loader/kernel_line.zig");
    pub const pxelinux_config = @import("loader/pxelinux_config.zig");
    pub const ipxe_script = @import("loader/ipxe_script.zig");
    pub const disk_fit = @import("loader/disk_fit.zig");
    pub const kernel_fit = @import("loader/kernel_fit.zig");
    pub const MediaQuery = @import("loader/media_query.zig").MediaQuery;
};
/// Boot profiles: what the boots of a version read, and reading ahead by it.
pub const profile = struct {
    pub const BootProfile = @import("profile/profile.zig");
    pub const ReadAhead = @import("profile/read_ahead.zig");
    pub const Trace = @import("profile/trace.zig");
    pub const Inventory = @import("profile/inventory.zig");
};
/// What the edges of a site decide together: peers, owners of devices, schedules, power orders.
pub const site = struct {
    pub const PowerOrders = @import("site/power_orders.zig");
    pub const DiscoveredDevices = @import("site/discovered_devices.zig");
    pub const WaitingDevices = @import("site/waiting_devices.zig");
    pub const RouterDiscovery = @import("site/router_discovery.zig");
    pub const Edges = @import("site/edges.zig");
    pub const Holdings = @import("site/holdings.zig");
    pub const DeviceIdentity = @import("site/device_identity.zig");
    pub const device_owner = @import("site/device_owner.zig");
    pub const PeerTable = @import("site/peer_table.zig");
    pub const ScheduleRunner = @import("site/schedule_runner.zig");
    pub const schedule_report = @import("site/schedule_report.zig");
};
/// The stream (packages/proto/STREAM.md): server, client, congestion control, sealing, tickets.
pub const stream = struct {
    pub const device_signature = @import("stream/device_signature.zig");
    pub const ReadTimes = @import("stream/client/read_times.zig");
    pub const packed_answers = @import("stream/packed.zig");
    pub const Window = @import("stream/congestion/window.zig");
    pub const Server = @import("stream/server/server.zig");
    pub const Client = @import("stream/client/client.zig");
    pub const Failover = @import("stream/client/failover.zig");
    pub const secrets = @import("stream/secrets.zig");
    pub const seal = @import("stream/seal.zig");
    pub const ticket = @import("stream/ticket.zig");
};
/// Copies of write layers at a second edge of the site.
pub const layer_copies = struct {
    pub const second_edge = @import("layer_copies/second_edge.zig");
    pub const CopySchedule = @import("layer_copies/copy_schedule.zig");
    pub const copy_life = @import("layer_copies/copy_life.zig");
};
/// Differences between versions, on their paths from edge to edge and to the control plane.
pub const difference = struct {
    pub const FetchPlan = @import("difference/fetch_plan.zig");
    pub const Pieces = @import("difference/pieces.zig");
    pub const PartSize = @import("difference/part_size.zig");
    pub const RateLimit = @import("difference/rate_limit.zig");
    pub const RepairPlan = @import("difference/repair_plan.zig");
    pub const SendPlan = @import("difference/send_plan.zig");
    pub const ServingSession = @import("difference/serving_session.zig");
};
/// What `bootfarm-target` decides on a device.
pub const target = struct {
    pub const nbd_queue = @import("target/nbd_queue.zig");
    pub const NbdQueue = @import("target/nbd_queue.zig");
    pub const local_disk_order = @import("target/local_disk_order.zig");
    pub const LostDisk = @import("target/lost_disk.zig");
    pub const options = @import("target/options.zig");
};
/// TFTP (RFC 1350, 2347, 2348, 2349, 7440): server and client.
pub const tftp = struct {
    pub const Client = @import("tftp/client.zig");
    pub const Server = @import("tftp/server.zig");
    pub const BusyPoll = @import("tftp/busy_poll.zig");
};
/// Release metadata (The Update Framework): what an edge may replace itself by.
pub const update = struct {
    pub const Client = @import("update/client.zig");
    pub const Download = @import("update/download.zig");
    pub const Exchange = @import("update/exchange.zig");
    pub const canonical_json = @import("update/canonical_json.zig");
    pub const Probation = @import("update/probation.zig");
    pub const Record = @import("update/record.zig");
    pub const signed_time = @import("update/signed_time.zig");
};
/// The uplink (packages/proto/UPLINK.md): messages, desired state, report log, jobs of the store.
pub const uplink = struct {
    pub const ControlUrl = @import("uplink/control_url.zig");
    pub const Proxy = @import("uplink/proxy.zig");
    pub const desired_state = @import("uplink/desired_state.zig");
    pub const difference_order = @import("uplink/difference_order.zig");
    pub const import_source = @import("uplink/import_source.zig");
    pub const ImportUrl = @import("uplink/import_url.zig");
    pub const ImageFetch = @import("uplink/image_fetch.zig");
    pub const store_job = @import("uplink/store_job.zig");
    pub const store_jobs = @import("uplink/store_jobs.zig");
    pub const store_inventory = @import("uplink/store_inventory.zig");
    pub const StoreInventory = store_inventory.StoreInventory;
    pub const record_frame = @import("uplink/record_frame.zig");
    pub const report_gaps = @import("uplink/report_gaps.zig");
    pub const report_log = @import("uplink/report_log.zig");
    pub const sealed_box = @import("uplink/sealed_box.zig");
    pub const state_delta = @import("uplink/state_delta.zig");
    pub const StateFollower = @import("uplink/state_follower.zig");
    pub const sender = @import("uplink/sender.zig");
    pub const batch_gzip = @import("uplink/batch_gzip.zig");
    pub const key_text = @import("uplink/key_text.zig");
    pub const message = @import("uplink/message.zig");
};

test {
    _ = layer_copies.second_edge;
    _ = layer_copies.CopySchedule;
    _ = layer_copies.copy_life;
    _ = difference.FetchPlan;
    _ = difference.Pieces;
    _ = difference.RateLimit;
    _ = difference.RepairPlan;
    _ = difference.SendPlan;
    _ = difference.ServingSession;
    _ = @import("boot/assignment.zig");
    _ = @import("boot/boot.zig");
    _ = @import("boot/boot_test.zig");
    _ = @import("boot/capture_store.zig");
    _ = @import("boot/cause.zig");
    _ = @import("boot/client.zig");
    _ = @import("boot/event.zig");
    _ = @import("boot/failover.zig");
    _ = @import("boot/guest.zig");
    _ = @import("boot/lost.zig");
    _ = @import("boot/handle.zig");
    _ = @import("boot/packets.zig");
    _ = @import("boot/phase.zig");
    _ = @import("boot/loader_steps.zig");
    _ = @import("boot/policy.zig");
    _ = @import("boot/read_ahead_tally.zig");
    _ = @import("boot/block_chains.zig");
    _ = @import("boot/read_list.zig");
    _ = @import("boot/guest_trace.zig");
    _ = @import("boot/guest_units.zig");
    _ = @import("stream/client/account_part.zig");
    _ = @import("boot/read_log.zig");
    _ = @import("boot/read_times.zig");
    _ = @import("boot/recent_reads.zig");
    _ = @import("boot/release.zig");
    _ = @import("boot/release_test.zig");
    _ = @import("boot/report.zig");
    _ = @import("boot/router_wait.zig");
    _ = @import("boot/table.zig");
    _ = @import("boot/table_test.zig");
    _ = @import("boot/unregistered_limit.zig");
    _ = @import("device/device.zig");
    _ = @import("device/device_profile.zig");
    _ = @import("device/dhcp_exchange.zig");
    _ = @import("device/guest_words.zig");
    _ = @import("device/http_exchange.zig");
    _ = @import("device/read_trace.zig");
    _ = @import("device/read_trace_test.zig");
    _ = @import("device/router_solicitor.zig");
    _ = @import("device/script.zig");
    _ = @import("dhcp/answer.zig");
    _ = @import("dhcp/leases.zig");
    _ = @import("dhcp/leases_test.zig");
    _ = @import("dhcp/network.zig");
    _ = @import("dhcp/network_test.zig");
    _ = @import("dhcp/server.zig");
    _ = @import("dhcp/service.zig");
    _ = @import("dhcp/service_test.zig");
    _ = @import("loader/config_menu.zig");
    _ = @import("loader/disk_fit.zig");
    _ = @import("loader/grub_config.zig");
    _ = @import("loader/ipxe_menu.zig");
    _ = @import("loader/ipxe_script.zig");
    _ = @import("loader/kernel_fit.zig");
    _ = @import("loader/kernel_line.zig");
    _ = @import("loader/media_query.zig");
    _ = @import("loader/menu.zig");
    _ = @import("loader/menu_test.zig");
    _ = @import("loader/pxelinux_config.zig");
    _ = @import("profile/inventory.zig");
    _ = @import("profile/profile.zig");
    _ = @import("profile/profile_test.zig");
    _ = @import("profile/read_ahead.zig");
    _ = @import("profile/read_ahead_test.zig");
    _ = @import("profile/trace.zig");
    _ = @import("site/device_identity.zig");
    _ = @import("site/device_identity_test.zig");
    _ = @import("site/device_owner.zig");
    _ = @import("site/discovered_devices.zig");
    _ = @import("site/edges.zig");
    _ = @import("site/peer_claims.zig");
    _ = @import("site/peer_table.zig");
    _ = @import("site/peer_table_test.zig");
    _ = @import("site/power_orders.zig");
    _ = @import("site/router_discovery.zig");
    _ = @import("site/schedule_book.zig");
    _ = @import("site/schedule_report.zig");
    _ = @import("site/schedule_run.zig");
    _ = @import("site/schedule_runner.zig");
    _ = @import("site/schedule_runner_test.zig");
    _ = @import("site/waiting_devices.zig");
    _ = @import("stream/client/client.zig");
    _ = @import("stream/client/client_test.zig");
    _ = @import("stream/client/failover.zig");
    _ = @import("stream/client/failover_test.zig");
    _ = @import("stream/client/hello.zig");
    _ = @import("stream/client/hello_test.zig");
    _ = @import("stream/client/mtu_probe.zig");
    _ = @import("stream/client/pending_read.zig");
    _ = @import("stream/client/read_times.zig");
    _ = @import("stream/client/reads.zig");
    _ = @import("stream/client/report.zig");
    _ = @import("stream/client/report_test.zig");
    _ = @import("stream/client/sends.zig");
    _ = @import("stream/client/step.zig");
    _ = @import("stream/client/writes.zig");
    _ = @import("stream/client/writes_test.zig");
    _ = @import("stream/congestion/path_mtu.zig");
    _ = @import("stream/congestion/rtt.zig");
    _ = @import("stream/congestion/window.zig");
    _ = @import("stream/congestion/window_test.zig");
    _ = @import("stream/device_signature.zig");
    _ = @import("stream/seal.zig");
    _ = @import("stream/seal_test.zig");
    _ = @import("stream/packed.zig");
    _ = @import("stream/secrets.zig");
    _ = @import("stream/server/duplicate_filter.zig");
    _ = @import("stream/server/hello.zig");
    _ = @import("stream/server/server.zig");
    _ = @import("stream/server/server_test.zig");
    _ = @import("stream/server/shards.zig");
    _ = @import("stream/server/shards_test.zig");
    _ = @import("stream/server/step.zig");
    _ = @import("stream/server/write_steps.zig");
    _ = @import("stream/server/writes.zig");
    _ = @import("stream/test_link.zig");
    _ = @import("stream/ticket.zig");
    _ = @import("target/local_disk_order.zig");
    _ = @import("target/lost_disk.zig");
    _ = @import("target/nbd_queue.zig");
    _ = @import("target/options.zig");
    _ = @import("tftp/busy_poll.zig");
    _ = @import("tftp/client.zig");
    _ = @import("tftp/event.zig");
    _ = @import("tftp/reply.zig");
    _ = @import("tftp/requests.zig");
    _ = @import("tftp/server.zig");
    _ = @import("tftp/server_test.zig");
    _ = @import("tftp/session.zig");
    _ = @import("tftp/session_test.zig");
    _ = @import("tftp/sources.zig");
    _ = @import("tftp/window.zig");
    _ = @import("update/canonical_json.zig");
    _ = @import("update/client.zig");
    _ = @import("update/download.zig");
    _ = @import("update/exchange.zig");
    _ = @import("update/metadata.zig");
    _ = @import("update/probation.zig");
    _ = @import("update/record.zig");
    _ = @import("update/signed_time.zig");
    _ = @import("uplink/batch_gzip.zig");
    _ = @import("uplink/control_url.zig");
    _ = @import("uplink/proxy.zig");
    _ = @import("uplink/desired_state.zig");
    _ = @import("uplink/import_source.zig");
    _ = @import("uplink/import_url.zig");
    _ = @import("uplink/image_fetch.zig");
    _ = @import("uplink/desired_state_test.zig");
    _ = @import("uplink/message.zig");
    _ = @import("uplink/message_test.zig");
    _ = @import("uplink/record_frame.zig");
    _ = @import("uplink/report_gaps.zig");
    _ = @import("uplink/report_log.zig");
    _ = @import("uplink/sealed_box.zig");
    _ = @import("uplink/sealed_box_test.zig");
    _ = @import("uplink/state_delta.zig");
    _ = @import("uplink/state_delta_test.zig");
    _ = @import("uplink/state_follower.zig");
    _ = @import("uplink/state_follower_test.zig");
    _ = @import("uplink/sender.zig");
    _ = @import("uplink/store_inventory.zig");
    _ = @import("uplink/store_job.zig");
    _ = @import("uplink/store_jobs.zig");
}
