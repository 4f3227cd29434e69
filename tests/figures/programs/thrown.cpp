// A C++ program with exceptions and virtual calls: a parser of sums that throws on one in some inputs, and unwinds frames.

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

struct Node {
    virtual ~Node() = default;
    virtual long value() const = 0;
};
struct Number : Node {
    long own;
    explicit Number(long of) : own(of) {}
    long value() const override { return own; }
};
struct Sum : Node {
    std::unique_ptr<Node> left, right;
    Sum(std::unique_ptr<Node> l, std::unique_ptr<Node> r) : left(std::move(l)), right(std::move(r)) {}
    long value() const override { return left->value() + right->value(); }
};
struct Quotient : Node {
    std::unique_ptr<Node> left, right;
    Quotient(std::unique_ptr<Node> l, std::unique_ptr<Node> r) : left(std::move(l)), right(std::move(r)) {}
    long value() const override {
        long by = right->value();
        if (by == 0) throw std::domain_error("divided by zero");
        return left->value() / by;
    }
};

struct Parser {
    const std::string &text;
    size_t at = 0;
    std::unique_ptr<Node> number() {
        if (at >= text.size() || text[at] < '0' || text[at] > '9') throw std::invalid_argument("no number");
        long found = 0;
        while (at < text.size() && text[at] >= '0' && text[at] <= '9') found = 10 * found + (text[at++] - '0');
        return std::make_unique<Number>(found);
    }
    std::unique_ptr<Node> all() {
        auto left = number();
        while (at < text.size()) {
            char sign = text[at++];
            auto right = number();
            switch (sign) {
            case '+': left = std::make_unique<Sum>(std::move(left), std::move(right)); break;
            case '/': left = std::make_unique<Quotient>(std::move(left), std::move(right)); break;
            default: throw std::invalid_argument("no sign");
            }
        }
        return left;
    }
};

int main(int, char **arguments) {
    const long rounds = std::atol(arguments[1]);
    unsigned long state = 88172645463325252u;
    long sum = 0, zeros = 0, wrong = 0;
    for (long round = 0; round < rounds; round++) {
        std::string text;
        for (int i = 0; i < 6; i++) {
            state ^= state << 13; state ^= state >> 7; state ^= state << 17;
            text += std::to_string(state % 90);
            if (i < 5) text += state % 97 == 0 ? '?' : state % 5 == 0 ? '/' : '+';
        }
        try {
            sum += Parser{text}.all()->value();
        } catch (const std::domain_error &) {
            zeros++;
        } catch (const std::invalid_argument &) {
            wrong++;
        }
    }
    std::printf("%ld %ld %ld\n", sum, zeros, wrong);
    // As a library this is not main.
    return 0;
}
