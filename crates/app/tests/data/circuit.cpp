// Behaves as the program that circom --c makes, and misbehaves where the inputs say so. Its first argument is the inputs' file, the
// second the witness to write; what it knows of the circuit is in the file of its own name with .dat behind.
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

static std::string content(const std::string& name) {
    std::ifstream file(name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

static void note_pid() {
    if (const char* name = std::getenv("PIDS")) std::ofstream(name, std::ios::app) << getpid() << "\n";
}

int main(int count, char** args) {
    if (count != 3) return 9;
    const std::string inputs = content(args[1]);
    const auto asked = [&](const char* word) { return inputs.find(word) != std::string::npos; };
    rlimit core;
    if (getrlimit(RLIMIT_CORE, &core) != 0 || core.rlim_max != 0) return 8;
    if (asked("hang")) {
        fork();
        note_pid();
        for (;;) pause();
    }
    if (asked("fail")) {
        std::fprintf(stderr, "Failed assert in template Main line 7.\n\x1b[31m Followed trace: main\n");
        return 3;
    }
    if (asked("abort")) std::abort();
    if (asked("memory")) {
        for (long taken = 0; taken < 4096; ++taken) {
            char* piece = static_cast<char*>(std::malloc(1 << 20));
            if (piece == nullptr) return 7;
            piece[0] = 1;
        }
    }
    if (asked("print")) {
        for (int line = 0; line < 30000; ++line) std::printf("line %d\n", line);
    }
    std::ofstream output(args[2], std::ios::binary);
    if (asked("large")) {
        const std::string piece(1 << 20, 'x');
        for (int pieces = 0; pieces < 300; ++pieces) output << piece;
    }
    output << (asked("garbage") ? "wtns and no more" : content(std::string(args[0]) + ".dat"));
    return 0;
}
