fn main() {
    tandem_peer_sppark::run()
}
